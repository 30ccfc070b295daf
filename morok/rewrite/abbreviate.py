"""One-line text of a node of any dialect, for traces and error messages, where a whole graph would not fit."""

from __future__ import annotations

from collections.abc import Hashable

from morok.dialect import NOT_CONST, Dialect, Node

_names: dict[str, tuple[Dialect, dict[Hashable, str]]] = {}


def op_name(dialect: Dialect, key: Hashable) -> str:
    """The name, as rules spell it, of the op whose nodes have this key."""
    found = _names.get(dialect.name)
    if found is None or found[0] is not dialect or len(found[1]) != len(dialect.ops):
        found = _names[dialect.name] = (dialect, {info.key: info.name for info in dialect.ops.values()})
    return found[1].get(key, str(key))


def abbreviate(dialect: Dialect, node: Node, depth: int = 4) -> str:
    """The text of a node, such as `Add(Mul(x, 4), ..)`. It ends `depth` levels below the root, so its length is bounded."""
    value = dialect.const_value(node)
    if value is not NOT_CONST:
        return repr(value).lower() if isinstance(value, bool) else repr(value)
    operands = dialect.operands(node)
    name = op_name(dialect, dialect.opkey(node))
    if not operands:
        return _leaf(dialect, node, name)
    if depth == 0:
        return f"{name}(..)"
    shown = [abbreviate(dialect, o, depth - 1) for o in operands[:8]]
    if len(operands) > 8:
        shown.append("..")
    return f"{name}({', '.join(shown)})"


def _leaf(dialect: Dialect, node: Node, name: str) -> str:
    if name not in dialect.ops:
        return repr(node)[:80]
    fields = dialect.ops[name].fields
    if "name" in fields:
        return str(dialect.attr(node, "name"))
    return f"{name}({', '.join(str(dialect.attr(node, f)) for f in fields)})"
