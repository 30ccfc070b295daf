"""Evaluation of compile-time expressions over Python values: of a guard, a `let` or a contract, given the values of its names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from morok.dsl import syntax as S
from morok.dsl.functions import BINARY, COMPARISONS, FUNCTIONS, Function
from morok.dsl.values import Steps, finite, item, listed, numbers, sequence


class Asked:
    """The facts about named nodes. This class has none; a subclass reads them off real nodes."""

    def named(self, name: str) -> Any:
        """The value of a name: a node, if the name denotes one."""
        raise AssertionError(f"a fact about {name} among compile-time values")

    def fact(self, name: str, *about: Any) -> Any:
        """The value of a fact about named nodes; `same` takes values too."""
        raise AssertionError(f"{name} among compile-time values")


NOTHING_ASKED: Final = Asked()


class Compiled(Protocol):
    def __call__(self, names: Mapping[str, Any], steps: Steps, asked: Asked = NOTHING_ASKED) -> Any: ...


def compiled(e: S.Expr) -> Compiled:
    """An expression as a Python function of the values of its names, a budget of steps and a source of facts. It is
    compiled once, as one expression is evaluated often.
    """
    found = _compiled.get(id(e))
    if found is None:
        if len(_compiled) >= MOST_COMPILED:
            _compiled.clear()
        made = eval(f"lambda names, steps, asked=nothing_asked: {_Text(frozenset(), frozenset()).of(e)}", dict(_NAMES))
        found = _compiled[id(e)] = (e, made)  # keeps the expression alive, so that no other gets its id
    return found[1]


MOST_COMPILED: Final = 4096  # many times the number of expressions in the contracts of all built-in rules
_compiled: dict[int, tuple[S.Expr, Compiled]] = {}
_NAMES: Final[Mapping[str, Any]] = {
    **{f"f_{name}": f.value for name, f in FUNCTIONS.items() if not f.fact},
    "f_eq": COMPARISONS["=="].value, "f_ne": COMPARISONS["!="].value, "shl": BINARY["<<"].value, "shr": BINARY[">>"].value,
    "item": item, "listed": listed, "numbers": numbers, "sequence": sequence, "finite": finite, "nothing_asked": NOTHING_ASKED,
}  # fmt: skip


class _Text:
    """The Python text of expressions.

    own       the names bound by the comprehensions around an expression
    counters  the names in `own` whose values are integers >= 0
    """

    def __init__(self, own: frozenset[str], counters: frozenset[str]) -> None:
        self.own = own
        self.counters = counters

    def of(self, e: S.Expr) -> str:
        match e:
            case S.EName(name=name):
                return f"own_{name}" if name in self.own else f"names[{name!r}]"
            case S.ENumber():
                return f"({e.value!r})"
            case S.EUnary():
                return f"({e.op} {self.of(e.operand)})"
            case S.EBinary(op="<<" | ">>"):
                return f"{'shl' if e.op == '<<' else 'shr'}({self.of(e.left)}, {self.of(e.right)})"
            case S.EBinary():
                return f"({self.of(e.left)} {e.op} {self.of(e.right)})"
            case S.ECompare():
                return self.comparison(e)
            case S.ECall() if e.name in FUNCTIONS and not FUNCTIONS[e.name].fact:
                return self.call(e, FUNCTIONS[e.name])
            case S.ECall():
                return f"finite({self.fact(e)})" if _may_be_infinite(e) else self.fact(e)
            case S.EIndex(index=S.EName(name=name)) if name in self.counters:
                return f"{self.of(e.sequence)}[own_{name}]"
            case S.EIndex(index=S.ENumber(value=int(n))) if n >= 0:
                return f"{self.of(e.sequence)}[{n}]"
            case S.EIndex():
                return f"item({self.of(e.sequence)}, {self.of(e.index)})"
            case S.ERange():
                return f"numbers({self.of(e.start)}, {self.of(e.stop)}{' + 1' if e.inclusive else ''})"
            case S.EList():
                items = [f"*{self.of(i.sequence)}" if isinstance(i, S.ESpread) else self.of(i) for i in e.items]
                return f"listed(({', '.join([*items, ''])}))" if items else "()"
            case S.EComprehension():
                return f"tuple([{self.comprehension(e)}])"
        raise AssertionError(f"{type(e).__name__} among compile-time values")

    def call(self, e: S.ECall, function: Function) -> str:
        over = e.args[0] if e.args else None
        if e.name in ("all", "any") and isinstance(over, S.EComprehension) and _is_condition(over.body):
            inner = self.comprehension(over)
            # short-circuiting is safe only if every item has a value
            return f"{e.name}({inner})" if _total(over) else f"{e.name}([{inner}])"
        return f"f_{e.name}({', '.join(map(self.of, e.args))})"

    def fact(self, e: S.ECall) -> str:
        about = [
            f"asked.named({a.name!r})"
            if isinstance(a, S.EName) and a.name not in self.own and e.name != "same"
            else self.of(a)
            for a in e.args
        ]
        return f"asked.fact({', '.join([repr(e.name), *about])})"

    def compared(self, e: S.Expr) -> str:
        """An operand of a comparison, where a bound may be infinite."""
        return self.fact(e) if isinstance(e, S.ECall) and _may_be_infinite(e) else self.of(e)

    def comparison(self, e: S.ECompare) -> str:
        if len(e.ops) == 1 and e.ops[0] in ("==", "!=") and not any(map(_is_number, e.operands)):
            return f"f_{'eq' if e.ops[0] == '==' else 'ne'}({self.compared(e.operands[0])}, {self.compared(e.operands[1])})"
        if len(e.ops) > 1 and any(op in ("==", "!=") for op in e.ops):
            pairs = zip(e.operands, e.ops, e.operands[1:], strict=False)
            return f"({' and '.join(self.comparison(S.ECompare((op,), (a, b), span=e.span)) for a, op, b in pairs)})"
        rest = "".join(f" {op} {self.compared(o)}" for op, o in zip(e.ops, e.operands[1:], strict=True))
        return f"({self.compared(e.operands[0])}{rest})"

    def comprehension(self, e: S.EComprehension) -> str:
        counts = (
            isinstance(e.sequence, S.ERange) and isinstance(e.sequence.start, S.ENumber) and e.sequence.start.value >= 0
        )
        names = frozenset(e.names)
        inner = _Text(self.own | names, self.counters | names if counts else self.counters - names)
        condition = "" if e.condition is None else f" if {inner.of(e.condition)}"
        source = self.of(e.sequence)
        if not isinstance(e.sequence, (S.ERange, S.EList, S.EComprehension)):
            source = f"sequence({source})"
        paid = f"steps.taken({source})" if len(e.names) == 1 else f"steps.parted({source}, {len(e.names)})"
        return f"{inner.of(e.body)} for {', '.join(f'own_{n}' for n in e.names)} in {paid}{condition}"


def _may_be_infinite(e: S.ECall) -> bool:
    return e.name in FUNCTIONS and FUNCTIONS[e.name].result == "bound"


def _is_number(e: S.Expr) -> bool:
    """True if the syntax of an expression shows a number, for which Python's equality is the language's."""
    return isinstance(e, (S.ENumber, S.EUnary, S.EBinary)) or (isinstance(e, S.ECall) and e.name in ("len", "sum"))


def _is_condition(e: S.Expr) -> bool:
    return (
        isinstance(e, S.ECompare)
        or (isinstance(e, S.EUnary) and e.op == "not")
        or (isinstance(e, S.ECall) and e.name in ("all", "any"))
        or (isinstance(e, S.EBinary) and e.op in ("and", "or") and _is_condition(e.left) and _is_condition(e.right))
    )


def _total(e: S.Expr) -> bool:
    """True if an expression has a value wherever its names do."""
    found = FUNCTIONS.get(e.name) if isinstance(e, S.ECall) else BINARY.get(e.op) if isinstance(e, S.EBinary) else None
    if isinstance(e, S.EIndex) or (found is not None and (found.partial or found.result == "bound")):
        return False
    return all(_total(c) for c in S.children(e) if isinstance(c, S.Expr))
