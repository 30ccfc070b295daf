"""Unknowns of a proof are told apart by what they are, not by what a rule or the prover happens to call them."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import pytest

import morok.prove
from morok.dsl.check import check_file, check_text
from morok.dsl.checked import CheckedRule
from morok.prove import smt
from morok.prove.semantics.term import World
from morok.prove.solve import DEFAULT_BUDGET, obligation
from morok.prove.symbol import Symbol
from morok.prove.verdict import Verdict
from morok.prove.workers import judge

HERE = Path(__file__).parent
PROVE = Path(morok.prove.__file__).parent
# What the prover and the solver call their own, as far as a rule may say it
VOCABULARY = [
    "left",
    "right",
    "iterations",
    "nothing",
    "at",
    "at0",
    "operand",
    "repeat",
    "closed",
    "then",
    "loop",
    "loop1",
    "range1",
    "wrap",
    "wrap1",
    "turns",
    "tdiv",
    "tmod",
    "floordiv",
    "cofactor",
    "remainder",
    "accumulator1",
    "size",
    "lane",
    "inside",
    "defined",
    "invalid",
    "infinite",
    "variable",
    "fresh",
    "value",
    "constant",
    "Element",
    "ite",
    "distinct",
    "Int",
    "Bool",
    "Real",
    "select",
    "store",
    "bvadd",
    "bvmul",
    "RNE",
    "forall",
    "exists",
    "NaN",
    "fp",
    "div",
    "mod",
    "sqrt",
    "pow",
    "exp2",
    "xs",
    "x0",
    "k",
]
MAKERS = frozenset(
    [
        "Const",
        "Consts",
        "Bool",
        "Bools",
        "Int",
        "Ints",
        "Real",
        "Reals",
        "BitVec",
        "BitVecs",
        "FP",
        "FPs",
        "Function",
        "Array",
        "FreshConst",
        "FreshInt",
        "FreshBool",
        "FreshFunction",
        "String",
    ]
)
# Questions about no rule, with names of their own: laws of products, places of machine code, termination orders
ALONE = {"nonlinear_lemmas.py", "bounds_check.py", "intervals.py", "lint/termination.py"}


def corpus(name: str) -> list[CheckedRule]:
    return list(check_file(HERE / f"{name}.rules").rules())


@pytest.mark.sampled(10)
@pytest.mark.parametrize("rule", corpus("symbols_false"), ids=lambda r: r.name)
def test_rules_that_rest_on_two_unknowns_of_one_name_are_refuted(rule: CheckedRule) -> None:
    found = judge(rule, DEFAULT_BUDGET, False)
    assert found.verdict == "refuted", found.message


def renamed(name: str, text: str, shift: int) -> str:
    """The rule with its variables called otherwise, one by one."""
    rule = next(iter(check_text(text, name).rules()))
    own = sorted(n for n in rule.bindings if not n.startswith("_"))
    free = [w for w in VOCABULARY if not re.search(rf"\b{w}\b", text)]
    new = dict(zip(own, itertools.islice(itertools.cycle(free), shift % len(free), None), strict=False))
    pattern = re.compile(rf"\b({'|'.join(own)})\b")
    head, body = text.split("rule:", 1)
    return f"{head}rule:{pattern.sub(lambda found: new[found[0]], body)}"


RENAMED = {
    "ring": "Mul(Add(x: int, y), Sub(x, y)) ~> Sub(Mul(x, x), Mul(y, y))",
    "division": "Add[Mod(x: (int | index), n), Mul[Idiv(x, n), n]] ~> x",
    "floors": "Add[FloorMod(x: index, n), Mul[FloorDiv(x, n), n]] ~> x",
    "mask": "Mod(x: uint, @const(c)) if is_pow2(c) ~> And(x, c - 1)",
    "where": "Where(c, x: bool, false) ~> And(c, x)",
    "invalid": "Where(a, Where(b, x: index?, Invalid), Invalid) ~> Where(And(a, b), x, Invalid)",
    "bounds": "Lt(x: !float, y) if vmax(x) < vmin(y) ~> true",
    "exact": "Idiv(m @ Mul(x: (int | index), y), y) if no_overflow(m) ~> x",
    "common": "Idiv(Mul(x: index, @const(a)), @const(b)) if b > 0 and a % b == 0 ~> Mul(x, a // b)",
    "divisor": "Mod(Mul(x: index, @const(a)), @const(b)) if gcd(a, b) == b and b > 0 ~> 0",
    "float": "Where(Lt(x: f32, y), y, x) if same(x, y) ~> x",
    "lanes": "Gep(Vectorize(a, b, c), [1]) ~> b",
    "counted": "Reduce { src: Where(Lt(r, c), @zero, y @ @const(v): index), ranges: [r @ Range(e: index)], op: Add }\n"
    "    if free_of(c, r) and vmin(e) >= 1\n    ~> Mul(y, Min(Max(Sub(e, c), 0), e))",
    "twice": "End(End(s, r), q) if free_of(r, q) ~> End(s, r, q)",
    "helper": "Idiv(x: index, @const(d)) if d > 0 let (q, r) = split(x, d) if vmin(r) >= 0 and vmax(r) < d and vmin(q) >= 0 => q",
    "false_ring": "Mul(Add(x: int, y), Sub(x, y)) ~> Sub(Mul(x, y), Mul(y, y))",
    "false_division": "Add[Mod(x: index, n), Mul[FloorDiv(x, n), n]] ~> x",
    "false_where": "Where(c, x: bool, y) ~> Where(c, y, x)",
    "false_bounds": "Lt(x: index, y) if vmin(x) < vmax(y) ~> true",
    "false_sum": "Reduce { src: Add(x: i32, y), ranges: rs, op: Add } ~> Add(x, Reduce { src: y, ranges: rs, op: Add })",
}


@pytest.mark.sampled(24)
@pytest.mark.parametrize("name", RENAMED)
def test_what_variables_are_called_changes_no_verdict(name: str) -> None:
    extern = (
        'helpers "promised"\n\n'
        "extern split(n: index, k: const) -> (a: index, b: index)?\n    requires k > 0\n    ensures n == k * a + b\n"
    )
    text = f'{extern if name == "helper" else ""}group g "renamed"\n\nrule: {RENAMED[name]}\n'
    found: set[tuple[str, str]] = set()
    for shift in (None, 0, 7, 23):
        given = text if shift is None else renamed(name, text, shift)
        (rule,) = check_text(given, name).rules()
        verdict: Verdict = judge(rule, DEFAULT_BUDGET, False)
        found.add((verdict.verdict, str(verdict.scope)))
    assert len(found) == 1, found


def test_symbols_are_equal_only_when_all_their_parts_are() -> None:
    atoms: list[str | int] = [
        "",
        "a",
        "a1",
        "1",
        1,
        11,
        -1,
        "x.y",
        "a,b",
        "a(b)",
        "#1",
        "a b",
        "%2c%",
        "|",
        "\\",
        "é",
        "a#1",
    ]
    symbols = [Symbol("variable", a) for a in atoms] + [Symbol("ignored", a) for a in atoms]
    symbols += [Symbol("item", a, b) for a in atoms for b in atoms]
    symbols += [Symbol("lane", Symbol("item", a, b), c) for a in atoms[:6] for b in atoms[:6] for c in atoms[:6]]
    symbols += [Symbol("lane", a, b, c) for a in atoms[:6] for b in atoms[:6] for c in atoms[:6]]
    symbols += [Symbol("variable", str(s)) for s in symbols[:20]]  # a name that is spelled as a symbol is another
    assert len(set(map(str, symbols))) == len(symbols)
    assert Symbol("item", "xs", 1) is Symbol("item", "xs", 1)
    assert not any("|" in s or "\\" in s for s in symbols)


def test_one_symbol_at_two_sorts_is_two_words() -> None:
    x = Symbol("variable", "x")
    text = obligation([smt.Bool(x), smt.Int(x) > 0, smt.Function(x, smt.IntSort(), smt.BoolSort())(smt.Int(x))])
    declared = re.findall(r"\(declare-fun (\S+)", text)
    assert len(declared) == len(set(declared)) == 3


def test_no_unknown_is_made_of_a_plain_name() -> None:
    for make in (smt.Int, smt.Bool, smt.Real):
        with pytest.raises(TypeError, match="is no symbol"):
            make("x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="is no symbol"):
        smt.Function("f", smt.IntSort(), smt.IntSort())  # type: ignore[arg-type]


def test_what_two_encodings_introduce_is_not_the_same() -> None:
    one, other = World("one"), World("other", part="base")
    assert one.fresh("wrap", smt.IntSort()) is not other.fresh("wrap", smt.IntSort())


@pytest.mark.long
def test_the_prover_makes_unknowns_in_one_place() -> None:
    """No file but those of `smt` calls a constructor of the library's, and nobody makes an unknown of a plain name."""
    found = []
    for path in sorted(PROVE.rglob("*.py")):
        name = path.relative_to(PROVE).as_posix()
        if name.startswith("smt/") or name in ALONE:
            continue
        for call in ast.walk(ast.parse(path.read_text())):
            if (
                not isinstance(call, ast.Call)
                or not isinstance(call.func, ast.Attribute)
                or call.func.attr not in MAKERS
            ):
                continue
            if not isinstance(call.func.value, ast.Name) or call.func.value.id not in ("z3", "smt"):
                continue
            spelled = any(isinstance(a, (ast.JoinedStr, ast.Constant)) for a in call.args[:1])
            if spelled or (call.func.value.id == "z3" and name != "meanings.py"):
                found.append(f"{name}:{call.lineno}")
    assert not found
