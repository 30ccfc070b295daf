"""The code templates of a dialect, and its dicts for derived facts, against its methods: on every node that a trial builds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from morok.dialect import NOT_CONST, NUMBERS, Dialect, OpInfo
from morok.prove.dialect_agreement import Wrong
from morok.prove.dialect_calls import call, const_value, filled
from morok.prove.dialect_values import same_number


def same_template(dialect: Dialect, a: Any, b: Any, shown: str) -> None:
    """An error where the template for `same` differs from the method on two nodes."""
    if "same" in dialect.inline and bool(filled(dialect, "same", shown, a=a, b=b)) != bool(dialect.same(a, b)):
        raise Wrong("inline['same']", f"is not what the method says of {shown}")


def remembered(dialect: Dialect, nodes: Sequence[tuple[Any, str]]) -> None:
    """An error where two nodes that are not the same carry one dict for derived facts, or one node carries several. Each node is
    given with what it is in words.
    """
    if "recall" not in dialect.inline and getattr(dialect, "recall", None) is None:
        return
    owners: dict[int, list[tuple[Any, str, Any]]] = {}  # by the dict, which is kept
    for node, shown in nodes:
        one, again = (
            filled(dialect, "recall", shown, n=node) if "recall" in dialect.inline else call(dialect, "recall", node)
            for _ in range(2)
        )
        if one is not again:
            raise Wrong("recall", f"of {shown} is another dict each time", "the dict that the node carries")
        for other, said, _ in owners.get(id(one), ()):
            if not call(dialect, "same", node, other):
                raise Wrong("recall", f"is one dict for {said} and {shown}", "a dict of its own for each node")
        owners.setdefault(id(one), []).append((node, shown, one))


def constant_templates(dialect: Dialect, name: str, value: Any, node: Any, key: Any) -> None:
    """An error where the templates differ from the methods on a constant."""
    op = dialect.inline.get("const_op")
    if op is not None and dialect.ops[op].key != key:
        raise Wrong("inline['const_op']", f"the constants' key is {key!r}, and {op}'s is {dialect.ops[op].key!r}")
    shown = f"the constant {value!r} of {name}"
    if (
        "is_const" in dialect.inline
        and "Op." not in dialect.inline["is_const"]
        and not filled(dialect, "is_const", shown, n=node)
    ):
        raise Wrong("inline['is_const']", f"is not so of {shown}")
    read_templates(dialect, node, shown, name)
    made = None if "const" not in dialect.inline else filled(dialect, "const", shown, v=value, d=dialect.dtypes[name])
    if made is not None and not dialect.same(made, node):
        raise Wrong("inline['const']", f"makes another node than const({name}, {value!r})")


def constant_of_any_number(dialect: Dialect, name: str, value: int) -> None:
    """An error where the template makes another constant of a number than the method, or one that the method refuses."""
    holes = {"v": value, "d": dialect.dtypes[name]}
    made = _or_none(lambda: dialect.const(dialect.dtypes[name], value))
    other = _or_none(lambda: filled(dialect, "const", repr(value), **holes))
    if (made is None) != (other is None) or (made is not None and not dialect.same(other, made)):
        raise Wrong("inline['const']", f"makes another node than const({name}, {value!r})", constants=True)


def _or_none(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except Exception:  # it refuses
        return None


def read_templates(dialect: Dialect, node: Any, shown: str, name: str, lanes: int = 1) -> None:
    """An error where the templates that read nodes differ from the methods and facts on one, whose lanes, so many, are of the
    dtype of this name.
    """
    for template, wanted in _wanted(dialect, node, name, lanes):
        got = filled(dialect, template, shown, n=node)
        if template == "operands":
            alike = len(got) == len(wanted) and all(a is b for a, b in zip(got, wanted, strict=True))
        elif template == "const_value":
            alike = same_number(got, wanted) if type(wanted) in NUMBERS else not _counts(dialect, node, got)
        else:
            alike = got is wanted or got == wanted
        if not alike:
            raise Wrong(f"inline[{template!r}]", f"is {got!r} for {shown}, and the method says {wanted!r}"[:300])


def _wanted(dialect: Dialect, node: Any, name: str, lanes: int) -> Iterator[tuple[str, Any]]:
    """The templates that read a node, each with what it should say."""
    for template in dialect.inline:
        if template in ("opkey", "type", "operands", "nests"):
            yield template, call(dialect, template, node)
        elif template == "const_value":
            yield template, const_value(dialect, node)
        elif template in ("vmin", "vmax") and template in dialect.facts:
            yield template, dialect.facts[template](node)
        elif template == "scalar":
            yield template, dialect.dtypes[name]
        elif template == "lanes":
            yield template, lanes
        elif template == "is_const" and "Op." not in dialect.inline[template]:
            yield template, const_value(dialect, node) is not NOT_CONST
        elif template.startswith("in."):
            yield template, name in dialect.classes.get(template[3:], frozenset((template[3:],)))


def _counts(dialect: Dialect, node: Any, value: Any) -> bool:
    """True if a matcher takes a node for a constant where the template for its value says this."""
    op = dialect.inline.get("const_op")
    return type(value) in NUMBERS if op is None else bool(dialect.opkey(node) == dialect.ops[op].key)


def building_templates(
    dialect: Dialect, info: OpInfo, operands: Sequence[Any], dtype: Any
) -> Iterator[tuple[str, Any]]:
    """The templates that build nodes of an op, each with the node that it makes; `dtype`: of the result, of a conversion."""
    shown = f"a node of {info.name}"
    template = f"pointwise{len(operands)}"
    if template in dialect.inline and not info.converts:
        holes = dict(zip("abc", operands, strict=False))
        yield template, filled(dialect, template, shown, op=info.key, **holes)
    template = f"build.{info.name}"
    if template in dialect.inline and len(operands) == 1:
        yield template, filled(dialect, template, shown, a=operands[0], d=dtype)
