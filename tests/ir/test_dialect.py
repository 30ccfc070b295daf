"""The op table as the engine sees it."""

from __future__ import annotations

import copy
import dataclasses
import subprocess
import sys
from typing import Any

import pytest

from morok import dialect
from morok.dialect import NOT_CONST
from morok.errors import DialectError
from morok.ir.dtype import dtype, dtypes
from morok.ir.morok_dialect import MOROK
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.uop import UOp

D = dtypes


def nodes() -> list[UOp]:
    x = UOp.var("x", D.f32)
    r = UOp.range(8, 3, AxisType.Reduce)
    place = UOp.new(Op.DefineGlobal, (), 0, D.f32.ptr(8)).index(r, gate=r < 4)
    return [
        x,
        UOp.const(2.0),
        r,
        place,
        x + 1.0,
        place.store(x),
        x.reduce(Op.Add, r),
        UOp.const((1, 2), D.i32).gep(1),
        r < 3,
        x.cast(D.i32),
    ]


def test_the_built_in_dialect_is_found_by_name() -> None:
    assert dialect.find("morok") is MOROK
    assert isinstance(MOROK, dialect.Dialect)


def test_a_copy_of_the_built_in_dialect_is_another() -> None:
    """A copy has a name of its own, as it may evaluate with anything."""
    made = copy.copy(MOROK)
    made.ops = {**MOROK.ops, "Add": dataclasses.replace(MOROK.ops["Add"], evaluate=MOROK.ops["Mul"].evaluate)}
    assert dialect.built_in(MOROK)
    assert not dialect.built_in(made)
    with pytest.raises(DialectError, match="as the built-in dialect is"):
        dialect.register(made)


@pytest.mark.long
def test_a_copy_of_the_built_in_dialect_is_digested() -> None:
    """And so is verified; in a process of its own, as all that can be reached counts: here what the tests have loaded."""
    program = """
import copy, dataclasses
from morok.ir.morok_dialect import MOROK
from morok.prove import sources

made = copy.copy(MOROK)
made.ops = {**MOROK.ops, "Add": dataclasses.replace(MOROK.ops["Add"], evaluate=MOROK.ops["Mul"].evaluate)}
assert sources.op_digest(made.ops["Add"], made) != sources.op_digest(MOROK.ops["Add"], MOROK)
assert sources.dialect_digest(made, frozenset())
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_templates_say_what_the_methods_say() -> None:
    for n in nodes():
        scope: dict[str, Any] = {"n": n, "Op": Op}

        def inline(key: str, scope: dict[str, Any] = scope) -> Any:
            return eval(MOROK.inline[key].format(n="n"), scope)

        assert inline("opkey") is MOROK.opkey(n)
        assert inline("operands") is MOROK.operands(n)
        assert inline("type") is MOROK.type(n)
        assert inline("vmin") == MOROK.facts["vmin"](n)
        assert inline("vmax") == MOROK.facts["vmax"](n)
        assert inline("is_const") == (MOROK.const_value(n) is not NOT_CONST)
        for f in n.entry.fields:
            assert inline(f"attr.{n.op.name}.{f}") == MOROK.attr(n, f)


def test_every_pointwise_op_is_built_by_name() -> None:
    for name, info in MOROK.ops.items():
        if not info.params or name == "Cast":
            continue
        for t in info.domains["T"]:
            operands = tuple([UOp.var(f"v{i}", D.bool if p == "bool" else dtype(t)) for i, p in enumerate(info.params)])
            made = MOROK.build(name, operands, {}, None)
            assert MOROK.opkey(made) is info.key
            assert made.dtype is (D.bool if info.result == "bool" else dtype(t))
            assert MOROK.rebuild(made, operands) is made
            assert info.kind == {1: "unary", 2: "binary", 3: "ternary"}[len(operands)]
            assert info.evaluate is not None
            assert info.solver


def test_what_the_signature_says_the_constructor_does() -> None:
    """Commutative ops have operands of one dtype; comparisons give bool."""
    for entry in TABLE.entries.values():
        if entry.comparison:
            assert entry.signature is not None
            assert entry.signature.result == "bool"
        if entry.commutative:
            assert entry.signature is not None
            assert entry.signature.params == ("T", "T")


def test_fields_are_built_in_order() -> None:
    r = MOROK.build("Range", [UOp.const(4)], {"id": 1, "axis": AxisType.Loop, "renumbered": False}, None)
    assert r is UOp.range(4, 1)
    assert MOROK.build("Const", [], {"value": 3}, D.i8) is UOp.const(3, D.i8)
    assert MOROK.build("Cast", [UOp.const(3, D.i8)], {}, D.i32) is UOp.const(3, D.i8).cast(D.i32)
