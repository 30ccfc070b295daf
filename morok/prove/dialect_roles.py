"""The roles that ops of a dialect declare against the lanes of nodes over constants: proofs take them at their word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from morok.dialect import Dialect, OpInfo
from morok.dsl.declared import Mistake
from morok.prove.dialect_calls import Wrong, call, filled
from morok.prove.dialect_nodes import Values, constant
from morok.prove.dialect_values import few, same_number

TRIED: Final = ("take", "join", "constants")
FEW: Final = 3  # constants of a dtype, which become the lanes of vectors


class Vector(NamedTuple):
    """A node and the values of its lanes."""

    node: Any
    lanes: tuple[Any, ...]


def role_mistakes(dialect: Dialect, info: OpInfo, values: Values) -> Iterator[Mistake]:
    """The mistake of an op whose nodes have other lanes than those of its role, or of whose lanes nothing is said."""
    try:
        if info.role not in TRIED:
            raise Wrong("role", f"of {info.role!r} there is no trial", f"{', '.join(TRIED)}, or none")
        if not callable(getattr(dialect, "lanes_of", None)):
            raise Wrong(
                "role", "nothing says which lanes nodes have, so that no role can be tried", "a method lanes_of, or no role"
            )
        if len(info.operands) != (info.role != "constants") or len(info.fields) != (info.role != "join"):
            raise Wrong("role", f"it has other operands and fields than {info.role!r}", "one operand, one field with lanes")
        _Trial(dialect, info).over(values)
    except Wrong as wrong:
        yield Mistake(info.name, wrong.mistake.field, wrong.mistake.message, wrong.mistake.expected)


class _Trial:
    """Nodes of one op, and their lanes."""

    def __init__(self, dialect: Dialect, info: OpInfo) -> None:
        self.dialect = dialect
        self.info = info
        self.field = next(iter(info.fields), "")
        self.seen = 0

    def over(self, values: Values) -> None:
        """Wrong unless nodes over constants of each dtype have the lanes that they should have."""
        for name, some in values.items():
            leaves = [Vector(constant(self.dialect, name, v), (v,)) for v in few(some, FEW)]
            if len(leaves) < 2:
                continue
            match self.info.role:
                case "join":
                    self._join(leaves)
                case "take":
                    self._take([*leaves[:1], *self._joined(leaves)])
                case _:
                    self._constants(name, tuple(lane for v in leaves for lane in v.lanes))
        if not self.seen:
            raise Wrong("role", f"no node of {self.info.name} could be built over constants", "a node with the lanes of its role")

    def _joined(self, leaves: Sequence[Vector]) -> Iterator[Vector]:
        """Vectors of several lanes, by the ops that join."""
        lanes = tuple(lane for v in leaves for lane in v.lanes)
        for info in self.dialect.ops.values():
            if info.role == "join" and (node := self._built(info, tuple(v.node for v in leaves), {}, None)) is not None:
                yield Vector(node, lanes)

    def _join(self, leaves: Sequence[Vector]) -> None:
        for given in (leaves, leaves[::-1], leaves[:2], [*self._joined(leaves), *leaves[:1]]):
            node = self._built(self.info, tuple(v.node for v in given), {}, None)
            self._has(node, tuple(lane for v in given for lane in v.lanes))
            self._rebuilt(node, [v.node for v in given[::-1]], tuple(lane for v in given[::-1] for lane in v.lanes))

    def _take(self, sources: Sequence[Vector]) -> None:
        for source in sources:
            last = len(source.lanes) - 1
            for wanted in ((0,), (last,), (last, 0), (0, last, last)):
                node = self._built(self.info, (source.node,), {self.field: wanted}, None)
                self._has(node, tuple(source.lanes[i] for i in wanted))
                self._holds(node, wanted)
                for other in sources:
                    if len(other.lanes) == len(source.lanes):
                        self._rebuilt(node, [other.node], tuple(other.lanes[i] for i in wanted))

    def _constants(self, name: str, lanes: tuple[Any, ...]) -> None:
        for given in (lanes, lanes[::-1]):
            node = self._built(self.info, (), {self.field: given}, self._vector(name, len(given)))
            self._has(node, given)
            self._holds(node, given)

    def _vector(self, name: str, lanes: int) -> Any:
        """The dtype of so many lanes, where the dialect has such."""
        d = self.dialect
        return filled(d, "vector", name, d=d.dtypes[name], k=lanes) if "vector" in d.inline else d.dtypes[name]

    def _built(self, info: OpInfo, operands: tuple[Any, ...], attrs: dict[str, Any], dtype: Any) -> Any:
        """A node; None where the dialect refuses to build it."""
        try:
            return self.dialect.build(info.name, operands, attrs, dtype)
        except Exception:  # as of lanes of one node each
            return None

    def _has(self, node: Any, lanes: tuple[Any, ...]) -> None:
        if node is None:
            return
        found = tuple(call(self.dialect, "const_value", n) for n in call(self.dialect, "lanes_of", node))
        if len(found) != len(lanes) or not all(map(same_number, found, lanes)):
            what = f"of a node that should have the lanes {lanes!r} as {self.info.role!r} lanes_of says {found!r}"
            raise Wrong("role", what, "the lanes of the role, or no role")
        self.seen += 1

    def _holds(self, node: Any, wanted: tuple[Any, ...]) -> None:
        if node is not None and tuple(call(self.dialect, "attr", node, self.field)) != wanted:
            raise Wrong("attr", f"{self.field} of a node is not {wanted!r}, of which it was built", "the value of the field")
        for template in (f"attr.{self.info.name}.{self.field}", f"attr.{self.field}"):
            if node is not None and template in self.dialect.inline:
                got = filled(self.dialect, template, self.field, n=node)
                if tuple(got) != wanted:
                    raise Wrong(f"inline[{template!r}]", f"is {got!r} of a node with {wanted!r}", "the value of the field")
                break  # the other one is not asked

    def _rebuilt(self, node: Any, operands: Sequence[Any], lanes: tuple[Any, ...]) -> None:
        if node is not None:
            self._has(call(self.dialect, "rebuild", node, tuple(operands)), lanes)


__all__ = ["role_mistakes"]
