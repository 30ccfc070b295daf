"""Rules of other dialects about lanes: their ops are read by the roles that they declare, at some numbers of lanes and items.

Of any number of these nothing is shown: they are the extents of the proof.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import replace
from typing import Any, Final

from morok.dialect import OpInfo
from morok.dsl import syntax as S
from morok.dsl.extent import Extent, named
from morok.prove.encoding.facts import MOST_LANES
from morok.prove.encoding.lane_selection import Lanes
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.operands import mentions
from morok.prove.kinds import Constant, Node, Parts, Sequence, Truth, whole
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Term, Unsupported, both
from morok.prove.symbol import Symbol

MOST_TRIED: Final = 3  # lanes of a vector, and items of a sequence
# By which method an op of a role is read, and what this calls its operands and fields, in their order.
ROLES: Final = {
    "take": ("taken", "vector", "indices"),
    "join": ("join", "sources"),
    "constants": ("op_vconst", "values"),
}


class ForeignLanes(Lanes):
    """Lanes taken from vectors and joined, by role."""

    def size(self, what: str, of: str, least: int) -> int:
        """Some sizes in place of all, of something that the rule calls so. A size is chosen here alone, and it is noted between
        which numbers: so a proof rests on no choice that its extent (morok.dsl.extent) does not name.
        """
        self.world.tries(Extent(*named(what, of), least, MOST_TRIED))
        return least + self.choices.pick(MOST_TRIED + 1 - least)

    def some_lanes(self, of: str) -> int:
        return self.size("lanes", of, 1)

    def structural(self, op: str, parts: dict[str, Any], at: S.Syntax) -> Any:
        """An op, read by its role: one of its name may mean anything in another dialect."""
        info: OpInfo = self.rule.dialect.ops[op]
        if info.role not in ROLES:
            raise Unsupported(f"the structure of {info.name}, which declares no role")
        if info.role == "constants" and any(info.field_kind(f) != "consts" for f in info.fields):
            raise Unsupported(f"{info.name}, of whose field nothing says that it holds constants")
        handler, *names = ROLES[info.role]
        theirs = [*(o.name for o in info.operands), *info.fields]
        if len(theirs) != len(names) or not parts.keys() <= set(theirs):
            raise Unsupported(f"{info.name}, which has other operands and fields than its role")
        given = Parts({ours: parts[t] for t, ours in zip(theirs, names, strict=True) if t in parts})
        return getattr(self, handler)(given, at)

    def any_operands(self, name: str, at: S.Syntax) -> list[Any]:
        """Operands bound to one name: a few, each of its own."""
        length = self.size("length", called(name), 0)
        binding = self.rule.bindings.get(name)
        ty = self.type_or_none(at) or (binding.type if binding is not None else None)
        if ty is None:
            raise Unsupported(f"operands {name} of unknown dtype")
        ok = binding.invalid_ok if binding is not None else mentions(at)
        own = not self.one_lane and self.rule.own_lanes(ty.lanes)
        each = [replace(ty, lanes=f"{ty.lanes}#{i}") if own else ty for i in range(length)]
        sequence = self.sequence_symbol(name)
        items = tuple(self.variable(Symbol("item", sequence, i), t, ok) for i, t in enumerate(each))
        self.bind(name, Sequence(items))
        return list(items)

    def sequence_symbol(self, name: str) -> Symbol:
        """The symbol of a sequence of the pattern: one without a name is another every time."""
        if not name.startswith("_"):
            return Symbol("variable", name)
        self.unnamed += 1
        return Symbol("ignored", name, self.unnamed)

    def lane_list(self, part: Any) -> tuple[Num, ...]:
        """The lanes of a Gep: in a pattern any few, by name."""
        found = self.static(part, self.static_number)
        if found is None:
            name = part.name
            length = self.size("length", called(name), 1)  # it cannot be empty
            sequence = self.sequence_symbol(name)
            found = Sequence(
                tuple(Num(self.numbers.n.variable(Symbol("item", sequence, i), MOST_LANES)) for i in range(length))
            )
            for i, n in enumerate(found.items):
                self.out.learn(f"{name}[{i}]", "value", n)
            if not name.startswith("_"):
                self.names[name] = found
        return tuple(self.number(i) for i in found.items)

    def pick_lane(self, lanes: Seq[Term], at: Num) -> Term:
        """The lane at a computed place; that it exists is a premise about patterns and part of the claim about targets."""
        n = self.numbers
        self.in_range(at, len(lanes))
        chosen = lanes[0]
        for i, t in enumerate(lanes[1:], 1):
            chosen = self.said("choose", n.eq(at.value, n.n.const(i)), t, chosen)
        return chosen

    def in_range(self, at: Num, length: int) -> None:
        n = self.numbers
        low = n.compare("<=", n.const(0), at)[1]
        high = n.compare("<", at, n.const(length))[1]
        if self.side == "target":
            self.must.extend((at.exists, at.finite, low, high))
        else:
            self.need(at.exists, at.finite, low, high)

    def taken(self, parts: dict[str, Any], at: S.Syntax) -> Any:
        vector = self.value_of(parts["vector"])
        if not isinstance(vector, Node):
            raise Unsupported("lanes of what is no vector")
        wanted = self.lane_list(parts["indices"])
        if not wanted:
            raise Inapplicable
        return Node(tuple(self.pick_lane(vector.lanes, i) for i in wanted), vector.dtype)

    def join(self, parts: dict[str, Any], at: S.Syntax) -> Node:
        return self.joined(self.many(parts["sources"]), single=False)

    def static_number(self, item: Any) -> Num:
        """The number of a lane in a static list of a pattern: a literal, or a name for any."""
        if isinstance(item, (S.PLiteral, S.ENumber)):
            number: Num = self.numbers.const(whole(item))
            return number
        if isinstance(item, S.PExpr):
            return self.static_number(item.value)
        if isinstance(item, (S.PVar, S.EName)):
            if item.name not in self.names:
                made = Num(self.numbers.n.variable(self.sequence_symbol(item.name), MOST_LANES))
                self.out.learn(item.name, "value", made)
                if item.name.startswith("_"):
                    return made
                self.names[item.name] = made
            return self.number(self.names[item.name])
        return self.number(self.expression(item))

    def item(self, e: S.EIndex) -> Any:
        items = self.sequence(e.sequence)
        at = self.number(self.expression(e.index))
        known = self.numbers.n.known(at.value)
        if known is not None or not items:
            return super().item(e)
        self.in_range(at, len(items))
        n = self.numbers
        chosen = items[0]
        for i, v in enumerate(items[1:], 1):
            chosen = self.either_of(Truth(n.eq(at.value, n.n.const(i))), v, chosen)
        return chosen

    def either_of(self, condition: Truth, yes: Any, no: Any) -> Any:
        if isinstance(yes, Node) and isinstance(no, Node) and len(yes.lanes) == len(no.lanes):
            return Node(
                tuple(self.said("choose", condition.value, a, b) for a, b in zip(yes.lanes, no.lanes, strict=True)),
                yes.dtype,
            )
        if isinstance(yes, Constant) and isinstance(no, Constant) and yes.dtype == no.dtype:
            return Constant(
                self.said("choose", condition.value, yes.term, no.term), yes.dtype, both(yes.exists, no.exists)
            )
        return super().either_of(condition, yes, no)


def called(name: str) -> str:
    """The name of a sequence of the pattern in an extent."""
    return "_" if name.startswith("_") else name
