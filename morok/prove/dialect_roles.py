"""The roles that ops of a dialect declare against the lanes of nodes over constants: proofs take them at their word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from morok.dialect import Dialect, OpInfo
from morok.dsl.declared import Mistake
from morok.prove.dialect_agreement import Wrong
from morok.prove.dialect_calls import call, filled
from morok.prove.dialect_lanes import Lanes, Vector, alike, sizes_of, vector_dtype
from morok.prove.dialect_nodes import Values, Worlds, constant
from morok.prove.dialect_values import few

TRIED: Final = ("take", "join", "constants")
OWN: Final = ("role", "attr", "build", "rebuild", "inline['attr")  # the fields of mistakes that are one op's
LONG: Final = 3  # vectors that many lanes are taken of
FEW: Final = 3  # constants of a dtype, which become the lanes of vectors


def role_mistakes(dialect: Dialect, info: OpInfo, values: Values, worlds: Worlds) -> Iterator[Mistake]:
    """The mistakes of an op whose nodes have other lanes than those of its role, or of whose lanes nothing is said, or something
    else than they are.
    """
    try:
        if info.role not in TRIED:
            raise Wrong("role", f"of {info.role!r} there is no trial", f"{', '.join(TRIED)}, or none")
        if not callable(getattr(dialect, "lanes_of", None)):
            raise Wrong(
                "role",
                "nothing says which lanes nodes have, so that no role can be tried",
                "a method lanes_of, or no role",
            )
        if len(info.operands) != (info.role != "constants") or len(info.fields) != (info.role != "join"):
            raise Wrong(
                "role", f"it has other operands and fields than {info.role!r}", "one operand, one field with lanes"
            )
        vectors = _Trial(dialect, info).over(values)
        yield from Lanes(dialect, worlds).mistakes(vectors)
    except Wrong as wrong:
        own = wrong.mistake.field.startswith(OWN)
        yield replace(wrong.mistake, op=info.name, constants=False) if own else wrong.mistake


class _Trial:
    """Nodes of one op, and their lanes."""

    def __init__(self, dialect: Dialect, info: OpInfo) -> None:
        self.dialect = dialect
        self.info = info
        self.field = next(iter(info.fields), "")
        self.sizes = sizes_of(dialect)
        self.name = ""  # of the dtype that lanes are of
        self.found: list[Vector] = []

    def over(self, values: Values) -> list[Vector]:
        """Vectors over constants of each dtype, all nodes of the op among them. Wrong unless these have the lanes of the role."""
        seen = 0
        for name, some in values.items():
            self.name = name
            leaves = [Vector(constant(self.dialect, name, v), name, (v,), repr(v)) for v in few(some, FEW)]
            if len(leaves) < 2:
                continue
            sources = [*leaves[:2], *self._joined(leaves)]
            self.found += sources
            seen -= len(self.found)
            match self.info.role:
                case "join":
                    self._join(leaves, sources[2:])
                case "take":
                    self._take(sources)
                case _:
                    self._constants(name, tuple(lane for v in leaves for lane in v.lanes))
            seen += len(self.found)
        if not seen:
            raise Wrong(
                "role",
                f"no node of {self.info.name} could be built over constants",
                "a node with the lanes of its role",
            )
        return self.found

    def _joined(self, leaves: Sequence[Vector]) -> Iterator[Vector]:
        """Vectors of several lanes, by the ops that join and by those of constants, another order of lanes among them."""
        for info in self.dialect.ops.values():
            for given in (leaves, leaves[::-1]):
                lanes = tuple(lane for v in given for lane in v.lanes)
                node = None
                if info.role == "join":
                    node = self._built(info, tuple(v.node for v in given), {}, None)
                elif info.role == "constants" and len(info.fields) == 1:
                    node = self._built(
                        info, (), {info.fields[0]: lanes}, vector_dtype(self.dialect, self.name, len(lanes))
                    )
                if node is not None:
                    yield Vector(node, self.name, lanes, f"{info.name} of {lanes!r}")

    def _join(self, leaves: Sequence[Vector], joined: Sequence[Vector]) -> None:
        long = [[leaves[i % len(leaves)] for i in range(n)] for n in self.sizes]
        self._note(self._built(self.info, (leaves[0].node,), {}, None), leaves[0].lanes)  # which may be its own lane
        for given in (leaves, leaves[::-1], leaves[:2], [*joined[:2], *leaves[:1]], *long):
            node = self._built(self.info, tuple(v.node for v in given), {}, None)
            self._has(node, tuple(lane for v in given for lane in v.lanes))
            self._rebuilt(node, [v.node for v in given[::-1]], tuple(lane for v in given[::-1] for lane in v.lanes))

    def _take(self, sources: Sequence[Vector]) -> None:
        for number, source in enumerate(sources):
            n = len(source.lanes)
            long = [tuple(i % n for i in range(size)) for size in self.sizes] if number < LONG else ()
            for wanted in ((0,), (n - 1,), (n - 1, 0), (0, n - 1, n - 1), tuple(range(n))[::-1], *long):
                node = self._built(self.info, (source.node,), {self.field: wanted}, None)
                self._has(node, tuple(source.lanes[i] for i in wanted), f"{self.field} {wanted!r} of {source.shown}")
                self._holds(node, wanted)
                for other in [v for v in sources if len(v.lanes) == len(source.lanes)][:2]:
                    self._rebuilt(node, [other.node], tuple(other.lanes[i] for i in wanted))

    def _constants(self, name: str, lanes: tuple[Any, ...]) -> None:
        long = [tuple(lanes[i % len(lanes)] for i in range(n)) for n in self.sizes]
        for given in (lanes, lanes[::-1], *long):
            node = self._built(self.info, (), {self.field: given}, vector_dtype(self.dialect, name, len(given)))
            self._has(node, given)
            self._holds(node, given)

    def _built(self, info: OpInfo, operands: tuple[Any, ...], attrs: dict[str, Any], dtype: Any) -> Any:
        """A node; None where the dialect refuses to build it."""
        try:
            return self.dialect.build(info.name, operands, attrs, dtype)
        except Exception:  # as of lanes of one node each
            return None

    def _note(self, node: Any, lanes: tuple[Any, ...], shown: str = "") -> None:
        if node is not None:
            self.found.append(Vector(node, self.name, lanes, f"{self.info.name} of {shown or repr(lanes)}"))

    def _has(self, node: Any, lanes: tuple[Any, ...], shown: str = "") -> None:
        if node is None:
            return
        found = tuple(call(self.dialect, "const_value", n) for n in call(self.dialect, "lanes_of", node))
        if not alike(found, lanes):
            what = f"of a node that should have the lanes {lanes!r} as {self.info.role!r} lanes_of says {found!r}"
            raise Wrong("role", what, "the lanes of the role, or no role")
        self._note(node, lanes, shown)

    def _holds(self, node: Any, wanted: tuple[Any, ...]) -> None:
        if node is not None and tuple(call(self.dialect, "attr", node, self.field)) != wanted:
            raise Wrong(
                "attr", f"{self.field} of a node is not {wanted!r}, of which it was built", "the value of the field"
            )
        for template in (f"attr.{self.info.name}.{self.field}", f"attr.{self.field}"):
            if node is not None and template in self.dialect.inline:
                got = filled(self.dialect, template, self.field, n=node)
                if tuple(got) != wanted:
                    raise Wrong(
                        f"inline[{template!r}]", f"is {got!r} of a node with {wanted!r}", "the value of the field"
                    )
                break  # the other one is not asked

    def _rebuilt(self, node: Any, operands: Sequence[Any], lanes: tuple[Any, ...]) -> None:
        if node is not None:
            self._has(call(self.dialect, "rebuild", node, tuple(operands)), lanes)
