"""The lanes of the nodes of a pattern: one unknown for what the rule, or a guard of it, says is one number."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Sort, Ty
from morok.prove import smt
from morok.prove.forms import conjuncts
from morok.prove.parametric.polynomials import INT, Integer, integer, within
from morok.prove.parametric.setting import Setting
from morok.prove.rule_syntax import names_in
from morok.prove.symbol import Symbol


class Lanes:
    """The lanes of nodes, by the names that their types have for them. `one_lane`: all have one, as elements of tensors do."""

    def __init__(self, rule: CheckedRule, setting: Setting, conditions: Iterable[S.Expr], one_lane: bool) -> None:
        self.rule = rule
        self.setting = setting
        self.one_lane = one_lane
        self.known: dict[str, Integer] = {}
        self.stands: dict[str, str | int] = {}
        self.each: dict[str, S.Expr] = {}
        self.multiples: dict[str, tuple[str | int, str]] = {}
        self.stand_ins: dict[str, Integer] = {}
        for condition in conditions:
            self._learn(condition)

    def of(self, ty: Ty) -> Integer:
        """The number of lanes of a node of this type: at least one."""
        if self.one_lane:
            return integer(1)
        name = ty.lanes
        while isinstance(name, str) and name in self.stands:
            name = self.stands[name]
        if isinstance(name, int):
            return integer(name)
        if name not in self.known:
            self.let(name, self._unknown(Symbol("lanes", name)))
        return self.known[name]

    def let(self, name: str, count: Integer) -> None:
        """Have the lanes of a name be a number that another one tells."""
        self.known[name] = self.setting.count(count)

    def is_open(self, ty: Ty) -> bool:
        """True if nothing is known of these lanes yet."""
        return isinstance(ty.lanes, str) and ty.lanes not in self.stands and ty.lanes not in self.known

    def of_items(self, name: str, symbol: Symbol, ty: Ty, length: Integer) -> Callable[[Integer], Integer]:
        """The number of lanes of each item of a sequence: all the same, or each its own."""
        if self.one_lane or not self.rule.own_lanes(ty.lanes):
            count = self.of(ty)
            return lambda k: count
        if name in self.each:
            same = self._told(self.each[name]) or self._unknown(Symbol("lanes", symbol))
            return lambda k: same
        own = smt.Function(Symbol("lanes", symbol), INT, INT)

        def count_of(k: Integer) -> Integer:
            found = integer(own(k.term))
            self.setting.instance("A vector has a lane.", smt.Implies(within(k, 0, length), found.term > 0))
            return found

        return count_of

    def _unknown(self, symbol: Symbol) -> Integer:
        count = integer(smt.Int(symbol))
        self.setting.premise(count.term > 0)
        return count

    def _told(self, said: S.Expr) -> Integer | None:
        """The number of lanes that a guard names for every item, where it is a number, or the lanes of a node."""
        if isinstance(said, S.ENumber):
            return integer(int(said.value))
        if isinstance(said, S.ECall) and isinstance(said.args[0], S.EName):
            ty = self._node(said.args[0].name)
            return None if ty is None else self.of(ty)
        return None

    def _node(self, name: str) -> Ty | None:
        """The type of what the pattern binds to a name, if that is one node."""
        binding = self.rule.bindings.get(name)
        return None if binding is None or binding.sort is not Sort.NODE else binding.type

    def _learn(self, condition: S.Expr) -> None:
        """`lanes(x) == lanes(y)` of two nodes makes their lanes one number, and `lanes(x) == 1` makes it 1; where a guard says
        so of every item of a sequence, each has as many as it says.
        """
        if isinstance(condition, S.ECall) and condition.name == "all" and len(condition.args) == 1:
            over = condition.args[0]
            if (
                not isinstance(over, S.EComprehension)
                or over.condition is not None
                or not isinstance(over.sequence, S.EName)
            ):
                return
            for c in conjuncts(over.body):
                match c:
                    case S.ECompare(ops=("==",), operands=(S.ECall(name="lanes", args=(S.EName(name=item),)), said)):
                        if over.names == (item,) and (found := self._said(said, item, over.sequence.name)) is not None:
                            self.each.setdefault(over.sequence.name, found)
            return
        match condition:
            case S.ECompare(
                ops=("==",),
                operands=(
                    S.EBinary(
                        op="%", left=S.ECall(name="lanes", args=(S.EName(name=x),)), right=S.EBinary(op="*") as divisor
                    ),
                    S.ENumber(value=0),
                ),
            ):
                self._learn_multiple(x, divisor)
            case S.ECompare(ops=("==",), operands=(S.ECall(name="lanes", args=(S.EName(name=x),)), said)):
                some = self._node(x)
                match said:
                    case S.ECall(name="lanes", args=(S.EName(name=y),)) if (others := self._node(y)) is not None:
                        if some is not None:
                            self._make_one(some.lanes, others.lanes)
                    case S.ENumber() if some is not None and isinstance(said.value, int) and said.value > 0:
                        self._make_one(some.lanes, int(said.value))

    def times(self, ty: Ty, result: Ty) -> Integer | None:
        """A number that a clause names, where a guard says that the lanes of a type are a multiple of it times those of another.
        It is known before its value.
        """
        lanes, name = self.multiples.get(str(ty.lanes), ("", ""))
        if not name or self._last(lanes) != self._last(result.lanes):
            return None
        return self.stand_ins.setdefault(name, integer(smt.Int(Symbol("variable", name))))

    def _learn_multiple(self, x: str, divisor: S.EBinary) -> None:
        """`lanes(x) % (m * k) == 0`, where m is the lanes of a node, and k is a name for what a helper returns."""
        lets = [c for c in self.rule.syntax.clauses if isinstance(c, S.Let) and len(c.names) == 1]
        values = {c.names[0]: c.value for c in lets}
        match divisor:
            case S.EBinary(left=S.EName(name=m), right=S.EName(name=k)):
                match values.get(m), values.get(k):
                    case S.ECall(name="lanes", args=(S.EName(name=y),)), S.ECall(name=helper) if (
                        helper in self.rule.externs
                    ):
                        some, others = self._node(x), self._node(y)
                        if some is not None and others is not None:
                            self.multiples[str(some.lanes)] = (others.lanes, k)

    def _make_one(self, some: str | int, others: str | int) -> None:
        a, b = self._last(some), self._last(others)
        if a == b:
            return
        if isinstance(a, str):
            self.stands[a] = b
        elif isinstance(b, str):
            self.stands[b] = a

    def _last(self, name: str | int) -> str | int:
        while isinstance(name, str) and name in self.stands:
            name = self.stands[name]
        return name

    def _said(self, said: S.Expr, item: str, sequence: str) -> S.Expr | None:
        """The lanes that every item is said to have: a number, the lanes of a node, or those of one of the items."""
        for clause in self.rule.syntax.clauses:
            if isinstance(said, S.EName) and isinstance(clause, S.Let) and clause.names == (said.name,):
                said = clause.value
        match said:
            case S.ENumber() if isinstance(said.value, int):
                return said
            case S.ECall(name="lanes", args=(S.EName(name=name),)) if name != item:
                return said if self._node(name) is not None else None
            case S.ECall(name="lanes", args=(S.EIndex(sequence=S.EName(name=name), index=k),)) if (
                name == sequence and item not in names_in(k)
            ):
                return said
        return None


__all__ = ["Lanes"]
