"""The bounds' transfer functions, proved: each function of morok/ir/bounds.py is run on unknown intervals (intervals.py), and on
every path the result's interval must hold the value that the op's solver semantics give to any operands in theirs.

What is assumed of the operands, each interval is nonempty and within its dtype unless the operand is Invalid throughout, is also
proved of the result: so it holds of every node, by induction over the graph.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from morok.ir.dtype import DType, dtypes, inf
from morok.ir.op import TABLE, Op, OpDef
from morok.ir.ops.loop import identity
from morok.prove import smt
from morok.prove.answers import Answer, Result
from morok.prove.intervals import Explorer, Symbol
from morok.prove.nonlinear_lemmas import Quotient, lemmas, magnitude, sign_of_truncated
from morok.prove.semantics.term import Term, both, choose, either, is_true, negation
from morok.prove.semantics.theory import MorokWorld
from morok.prove.smt import FALSE, TRUE, Expr
from morok.prove.smt.session import Died
from morok.prove.solve import ask
from morok.prove.symbol import Symbol as Unknown

BUDGET: Final = 20_000_000
BITWISE: Final = frozenset({Op.And, Op.Or, Op.Xor, Op.Not, Op.Shl, Op.Shr})


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """An operand as a transfer function sees it."""

    dtype: DType
    vmin: Any
    vmax: Any
    op: Op = Op.Noop
    src: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding about one op at one choice of dtypes and of ends that are infinite."""

    where: str
    answer: Answer
    paths: int
    resources: int
    counterexample: str = ""


@dataclass(slots=True)
class Case:
    """One op at one choice of dtypes: its operands as intervals, the value as the solver sees it."""

    where: str
    world: MorokWorld
    explorer: Explorer
    result: DType
    operands: list[Operand]
    values: list[Expr]
    value: Term
    transfer: Callable[[], Any]
    empty: bool = False


def _ends(d: DType) -> list[tuple[bool, bool]]:
    """The ends of an interval that may be finite."""
    return [(x, y) for x in (True, False) for y in (True, False)] if d.is_index else [(not d.is_float, not d.is_float)]


def _number(world: MorokWorld, width: int, d: DType, value: Expr) -> Expr:
    """The integer that a lane's value is, as the explorer has integers."""
    if d.is_bool:
        one, zero = (smt.BitVecVal(1, width), smt.BitVecVal(0, width)) if width else (smt.IntVal(1), smt.IntVal(0))
        return smt.If(value, one, zero)
    if not width:
        return value
    return smt.SignExt(width - d.bits, value) if d.is_signed else smt.ZeroExt(width - d.bits, value)


def _operand(
    world: MorokWorld, explorer: Explorer, name: str, d: DType, finite: tuple[bool, bool]
) -> tuple[Operand, Term]:
    """An operand with an unknown interval, and a value inside it."""
    value = world.variable(Unknown("variable", name), d.name)
    ends: list[Any] = []
    premises: list[Expr] = []
    for known, infinite, end in zip(finite, (-inf, inf), ("low", "high"), strict=True):
        ends.append(Symbol(explorer, _unknown(explorer, Unknown("bound", name, end))) if known else infinite)
    lo, hi = ends
    if not d.is_float:
        number = _number(world, explorer.width, d, value.value)
        premises += [_at_most(explorer, lo, number), _at_most(explorer, number, hi)]
        premises.append(_at_most(explorer, lo, hi))
        if not d.is_index:
            premises += [_at_most(explorer, d.min, lo), _at_most(explorer, hi, d.max)]
    explorer.premises = [*explorer.premises, *(p for p in premises if not is_true(p))]
    return Operand(d, lo, hi), value


def _unknown(explorer: Explorer, name: Unknown) -> Expr:
    return smt.BitVec(name, explorer.width) if explorer.width else smt.Int(name)


def _at_most(explorer: Explorer, a: Any, b: Any) -> Expr:
    """a <= b, where either may be an infinity, a number, a symbol or an expression."""
    if isinstance(a, float) or isinstance(b, float):
        low, high = a == -inf if isinstance(a, float) else None, b == inf if isinstance(b, float) else None
        return TRUE if low or high else FALSE
    x, y = (v if isinstance(v, Expr) else explorer.number(v) for v in (a, b))
    return x <= y


def _solver_function(entry: OpDef) -> Callable[..., Term]:
    module, _, name = entry.solver.partition(":")
    found: Callable[..., Term] = getattr(importlib.import_module(module), name)
    return found


def _pointwise(entry: OpDef, d: DType, source: DType | None = None) -> Iterator[Case]:
    """The cases of a pointwise op whose dtype variable is `d` (for casts: the result's; `source` the operand's)."""
    assert entry.signature is not None
    assert entry.bounds is not None
    bounds = entry.bounds
    result = dtypes.bool if entry.signature.result == "bool" else d
    kinds = (
        [source or d] if entry.op is Op.Cast else [dtypes.bool if p == "bool" else d for p in entry.signature.params]
    )
    widest = max((k.bits for k in (*kinds, result)), default=0)
    width = 2 * widest + 2 if entry.op in BITWISE and not any(k.is_index for k in kinds) else 0
    if entry.op in (Op.Shl, Op.Shr):
        width = 2 * widest + 2
    apply = _solver_function(entry)
    names = [o.name for o in entry.operands]
    aliases = (False, True) if entry.op is Op.Mul else (False,)
    for finite, alias in itertools.product(itertools.product(*map(_ends, kinds)), aliases):
        world = MorokWorld("bounds", integers=not width)
        explorer = Explorer(width, [])
        made = [_operand(world, explorer, n, k, f) for n, k, f in zip(names, kinds, finite, strict=True)]
        if alias:
            if finite[0] != finite[1]:
                continue
            made = [made[0], made[0]]
        operands, values = [o for o, _ in made], [v for _, v in made]
        extra = (kinds[0],) if entry.op is Op.Cast else ()
        value = apply(world, kinds[0] if entry.comparison else result, *values, *extra)
        src: Any = tuple(operands)
        where = _where(entry.name, kinds, result, finite) + (" of one operand twice" if alias else "")
        yield Case(
            where,
            world,
            explorer,
            result,
            operands,
            [v.value for v in values],
            value,
            partial(bounds, result, src, None),
        )


def _where(name: str, kinds: Sequence[DType], result: DType, finite: Sequence[tuple[bool, bool]]) -> str:
    ends = ["" if f == (True, True) or d.is_float else "[" + ("lo" if f[0] else "-inf") + "," + ("hi" if f[1] else "inf") + "]"
            for d, f in zip(kinds, finite, strict=True)]  # fmt: skip
    return f"{name}({', '.join(d.name + e for d, e in zip(kinds, ends, strict=True))}) : {result.name}"


def _where_cases(entry: OpDef, d: DType) -> Iterator[Case]:
    """A Where with a branch that is Invalid throughout: its interval is empty, and its value is none."""
    assert entry.bounds is not None
    bounds = entry.bounds
    for branch, finite in itertools.product((1, 2), _ends(d)):
        world, explorer = MorokWorld("bounds", integers=True), Explorer(0, [])
        condition, c = _operand(world, explorer, "cond", dtypes.bool, (True, True))
        some, x = _operand(world, explorer, "x", d, finite)
        none = Operand(d, inf, -inf)
        src: Any = (condition, none, some) if branch == 1 else (condition, some, none)
        values = (c, world.invalid(), x) if branch == 1 else (c, x, world.invalid())
        value = _solver_function(entry)(world, d, *values)
        where = f"Where with an Invalid branch {branch} : {_where('', [d], d, [finite])}"
        yield Case(
            where,
            world,
            explorer,
            d,
            [condition, some],
            [c.value, x.value],
            value,
            partial(bounds, d, src, None),
            empty=True,
        )


def _one_of(entry: OpDef, d: DType, which: Sequence[int], count: int, also: int | None = None) -> Iterator[Case]:
    """Ops every lane of which is a lane of some operand (or the number `also`)."""
    assert entry.bounds is not None
    bounds = entry.bounds
    for finite in itertools.product(_ends(d), repeat=count):
        world, explorer = MorokWorld("bounds", integers=True), Explorer(0, [])
        made = [_operand(world, explorer, f"x{i}", d, f) for i, f in enumerate(finite)]
        options = [made[i][1].value for i in which]
        if also is not None:
            options.append(world.constant(d.name, also).value)
        value = options[-1]
        for i, option in enumerate(options[:-1]):
            value = smt.If(smt.Int(Unknown("fixed", "lane")) == i, option, value)
        src: Any = tuple(o for o, _ in made)
        where = _where(entry.name, [d] * count, d, finite)
        yield Case(
            where,
            world,
            explorer,
            d,
            [o for o, _ in made],
            [v.value for _, v in made],
            Term(value),
            partial(bounds, d, src, None),
        )


def _counters(entry: OpDef, d: DType) -> Iterator[Case]:
    """Range, Special, Iota: some number from 0 to below the end."""
    assert entry.bounds is not None
    bounds = entry.bounds
    for finite in _ends(d):
        world, explorer = MorokWorld("bounds", integers=True), Explorer(0, [])
        end, e = _operand(world, explorer, "end", d, finite)
        i = world.variable(Unknown("fixed", "i"), d.name)
        value = Term(i.value, smt.And(i.value >= 0, i.value < e.value))
        src: Any = (end,)
        yield Case(
            _where(entry.name, [d], d, [finite]),
            world,
            explorer,
            d,
            [end],
            [e.value],
            value,
            partial(bounds, d, src, None),
        )


def _folds(entry: OpDef, d: DType, op: Op) -> Iterator[Case]:
    """A greatest or least value over a loop: one of the body's, or the identity where the loop does not run."""
    assert entry.bounds is not None
    bounds = entry.bounds
    loop = entry.op is Op.Reduce
    for finite, ends in itertools.product(_ends(d), _ends(dtypes.index)):
        world, explorer = MorokWorld("bounds", integers=True), Explorer(0, [])
        body, v = _operand(world, explorer, "body", d, finite)
        end, e = _operand(world, explorer, "end", dtypes.index, ends)
        runs = e.value >= 1
        neutral = world.constant(d.name, 0 if d.is_index else identity(op, d))
        value = Term(choose(runs, v.value, neutral.value), either(runs, FALSE if d.is_index else TRUE))
        src: Any = (body, Operand(dtypes.index, 0, inf, Op.Range, (end,))) if loop else (body,)
        arg: Any = op if loop else (op, (0,))
        where = _where(f"{entry.name} {op.name}", [d, dtypes.index], d, [finite, ends])
        yield Case(where, world, explorer, d, [body, end], [v.value, e.value], value, partial(bounds, d, src, arg))


INTEGRAL: Final = tuple(d for d in (dtypes.bool, dtypes.i8, dtypes.i16, dtypes.i32, dtypes.i64, dtypes.u8, dtypes.u16, dtypes.u32,
                                    dtypes.u64, dtypes.index))  # fmt: skip


def cases(op: Op) -> Iterator[Case]:
    """Every case of an op that has a transfer function."""
    entry = TABLE[op]
    if entry.op is Op.Cast:
        for source, d in itertools.product((*INTEGRAL, dtypes.f32), INTEGRAL):
            yield from _pointwise(entry, d, source)
    elif entry.pointwise:
        assert entry.signature is not None
        for d in entry.signature.domains["T"]:
            if not d.is_float:
                yield from _pointwise(entry, d)
        if op is Op.Where:
            yield from _where_cases(entry, dtypes.index)
    elif op in (Op.Range, Op.Special, Op.Iota):
        for d in INTEGRAL[1:] if op is Op.Range else (dtypes.index,):
            yield from _counters(entry, d)
    elif op in (Op.Reduce, Op.ReduceAxis):
        for d, fold in itertools.product(INTEGRAL, (Op.Max, Op.Min)):
            yield from _folds(entry, d, fold)
    else:
        many = op in (Op.Vectorize, Op.Cat, Op.Concat)
        for d in INTEGRAL:
            if op is Op.Bind:
                yield from _one_of(entry, d, (1,), 2)
            else:
                yield from _one_of(entry, d, (0, 1) if many else (0,), 2 if many else 1, 0 if op is Op.Pad else None)


def judge(case: Case, budget: int = BUDGET) -> Finding:
    """Every path of a case: whether its interval holds the value."""
    explorer = case.explorer
    paths = spent = 0
    reached = False
    for lo, hi in explorer.paths(case.transfer):
        paths += 1
        told = _facts(case)
        there = both(case.value.defined, negation(case.value.invalid))
        claim = either(negation(there), _inside(case, lo, hi))
        if not case.empty:  # the interval is one that other nodes may build upon, whether or not there is a value
            claim = both(claim, _well_formed(case, lo, hi))
        said, cost = _ask(told, negation(claim), budget)
        spent += cost
        if said.answer is not Answer.UNSAT:
            example = _example(case, said.model, lo, hi) if said.answer is Answer.SAT else ""
            return Finding(case.where, said.answer, paths, spent, example)
        if not reached:
            said, cost = _ask(told, there, budget)
            spent += cost
            reached = said.answer is Answer.SAT
    if not reached:
        return Finding(case.where, Answer.UNKNOWN, paths, spent, "no operands give it a value")
    return Finding(case.where, Answer.UNSAT, paths, spent)


def _ask(told: tuple[list[Expr], list[Expr]], condition: Expr, budget: int) -> tuple[Result, int]:
    """First by the lemmas alone; where they do not refute it, with the definitions too."""
    facts, exact = told
    said = ask([*facts, condition], budget)
    if said.answer is Answer.UNSAT or not exact:
        return said, said.resources
    full = ask([*facts, *exact, condition], budget)
    return full, said.resources + full.resources


def _facts(case: Case) -> tuple[list[Expr], list[Expr]]:
    """(what is said of the case on this path, the definitions that multiply unknowns)."""
    explorer, world = case.explorer, case.world
    if explorer.width:
        return [*explorer.premises, *explorer.facts, *world.axioms], []
    for (kind, a, b), (q, _) in _divisions(world):
        if kind == "tdiv":
            explorer.quotient_is(Quotient(magnitude(a), magnitude(b), magnitude(q)))
            explorer.facts.append(smt.Implies(b != 0, sign_of_truncated(a, b, q)))
        else:
            explorer.quotient_is(Quotient(smt.If(b > 0, a, -a), magnitude(b), q))
    names = _products(case)
    axioms = [smt.substitute(a, *names) for a in world.axioms] if names else world.axioms
    easy: list[Expr] = []
    hard: list[Expr] = []
    for axiom in axioms:
        (hard if list(_multiplications(axiom)) else easy).append(axiom)
    return [*explorer.premises, *explorer.facts, *easy], [*explorer.exact, *hard]


def _products(case: Case) -> list[tuple[Expr, Expr]]:
    """The products in what is said of the value, with names; beside them those of the ends of the factors' intervals."""
    explorer = case.explorer
    found = {m.number: m for e in (*case.world.axioms, case.value.value) for m in _multiplications(e)}
    if not explorer.products or any(len(m.args) != 2 for m in found.values()):
        return []
    near: dict[int, list[Expr]] = {}
    for operand, value in zip(case.operands, case.values, strict=True):
        near[value.number] = [value, *(v.value for v in (operand.vmin, operand.vmax) if isinstance(v, Symbol))]
    names = []
    for m in found.values():
        x, y = m.args
        for u, v in itertools.product(near.get(x.number, [x]), near.get(y.number, [y])):
            explorer.product(u, v)
        names.append((m, explorer.product(x, y)))
    return names


def _multiplications(e: Expr) -> Iterator[Expr]:
    """The products of unknowns in an expression."""
    todo, seen = [e], set()
    while todo:
        at = todo.pop()
        if at.number in seen:
            continue
        seen.add(at.number)
        if at.head == "*" and sum(c.head != "value" for c in at.args) > 1:
            yield at
        todo.extend(at.args)


def _inside(case: Case, lo: Any, hi: Any) -> Expr:
    value = case.value.value
    if not case.explorer.width and (names := _products(case)):
        value = smt.substitute(value, *names)
    number = _number(case.world, case.explorer.width, case.result, value)
    return both(_at_most(case.explorer, lo, number), _at_most(case.explorer, number, hi))


def _well_formed(case: Case, lo: Any, hi: Any) -> Expr:
    explorer, d = case.explorer, case.result
    return both(_at_most(explorer, lo, hi), _at_most(explorer, d.min, lo), _at_most(explorer, hi, d.max))


def _divisions(world: MorokWorld) -> list[tuple[Any, Any]]:
    return [(key, made) for made, key in world.known.values() if key[0] in ("tdiv", "floordiv")]


def _example(case: Case, model: Any, lo: Any, hi: Any) -> str:
    def read(v: Any) -> str:
        return str(model.value(v.value)) if isinstance(v, Symbol) else str(v)

    try:
        operands = ", ".join(f"{o.dtype.name} in [{read(o.vmin)}, {read(o.vmax)}]" for o in case.operands)
        value = model.value(case.value.value)
    except Died:
        return "the solver's process died before it named the operands"
    return f"{operands}: [{read(lo)}, {read(hi)}] is no interval of {case.result}, or does not hold the value {value}"


def prove_lemmas(budget: int = BUDGET) -> list[Finding]:
    """The findings about the lemmas on products and quotients in nonlinear_lemmas.py, each from the definitions."""
    found = []
    for name, premises, claim in lemmas():
        said = ask([*premises, negation(claim)], budget)
        found.append(Finding(name, said.answer, 1, said.resources))
        if said.answer is not Answer.UNSAT:
            break
    return found


def prove_bounds(op: Op, budget: int = BUDGET) -> list[Finding]:
    """The findings on one op, a case each; the first that is not a proof ends it."""
    found = []
    for case in cases(op):
        found.append(judge(case, budget))
        if found[-1].answer is not Answer.UNSAT:
            break
    return found
