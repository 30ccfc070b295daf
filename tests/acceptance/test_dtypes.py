"""Table 1.2: dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from acceptance.notation import V, argument
from morok import AxisType, Tensor, UOp
from morok import dtypes as d
from morok.codegen.machines import host
from morok.ir import number
from morok.ir.dtype import DType, PtrType, dtype, promote, safe_cast
from morok.ir.op import REDUCE_OPS, Op
from morok.passes.pipeline import STAGES, Program, lower, run
from morok.tensor.schedule import create_schedule

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_numpys(name: str) -> None:
    mine = dtype(name)
    info = np.iinfo(("int" if name[0] == "i" else "uint") + name[1:])
    assert (mine.min, mine.max, mine.bits, mine.itemsize) == (info.min, info.max, info.bits, info.bits // 8)
    assert mine.is_signed == (info.min < 0)


@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_numpys(name: str) -> None:
    mine, info = dtype(name), ml_dtypes.finfo(FLOATS[name])
    assert (mine.bits, mine.itemsize) == (info.bits, info.bits // 8)
    for value in (info.max, info.tiny, info.smallest_subnormal, 1 + info.eps):
        assert number.round_float(mine, float(value)) == float(value)


@pytest.mark.parametrize(("mine", "theirs"), [(d.f8e4m3, ml_dtypes.float8_e4m3fn), (d.f8e5m2, ml_dtypes.float8_e5m2)])
def test_all_256_codes_of_eight_bit_floats(mine: DType, theirs: type) -> None:
    with np.errstate(invalid="ignore"):
        values = np.arange(256, dtype=np.uint8).view(theirs).astype(np.float64)
    for code, value in enumerate(values.tolist()):
        got = number.from_bits(mine, code)
        assert got == value or (got != got and value != value)
        if got == got:
            assert number.to_bits(mine, got) == code
    assert promote(mine, mine) in (mine, d.f16)
    assert promote(mine, d.f16) is d.f16


def test_no_index_after_stage_15() -> None:
    after: dict[int, Program] = {}
    x = np.arange(60, dtype=np.float32).reshape(5, 12)
    for t in (Tensor(x).sum(1), Tensor(x).T + 1, Tensor(x).pad(((1, 2), (0, 1))), Tensor(x).argmax(1)):
        for item in create_schedule([t]):
            lower(item.ast, host(), lambda number, name, before, program: after.__setitem__(number, program))
            for number_, program in after.items():
                if number_ >= 15:
                    nodes = program.toposort() if isinstance(program, UOp) else program
                    assert not [u for u in nodes if u.dtype.is_index], number_


def test_vectors() -> None:
    assert d.f32.vec(4).scalar() is d.f32
    assert d.f32.vec(4).count == 4


def test_a_vector_of_pointers() -> None:
    p = d.f32.ptr(16).vec(4)
    assert isinstance(p, PtrType)
    assert (p.count, p.base, p.size) == (4, d.f32, 16)
    assert p.scalar() is d.f32.ptr(16)
    assert p is not d.f32.vec(4).ptr(16)


@pytest.mark.parametrize(
    ("a", "b", "both"),
    [("i8", "u8", "i16"), ("i32", "f16", "f16"), ("i64", "u64", "u64"), ("f16", "bf16", "f32"), ("u32", "i32", "i64")],
)
def test_promotion(a: str, b: str, both: str) -> None:
    assert promote(dtype(a), dtype(b)) is dtype(both)
    assert promote(dtype(b), dtype(a)) is dtype(both)


@pytest.mark.parametrize(
    ("source", "target", "safe"),
    [("i64", "i8", False), ("bool", "i32", True), ("i32", "f32", False), ("i8", "i64", True), ("u8", "i16", True)],
)
def test_safe_casts_lose_no_value(source: str, target: str, safe: bool) -> None:
    assert safe_cast(dtype(source), dtype(target)) is safe


def test_axis_priorities() -> None:
    levels: dict[int, set[str]] = {}
    for axis in AxisType:
        levels.setdefault(axis.priority, set()).add(axis.name)
    assert [levels[p] for p in sorted(levels)] == [
        {"Outer"}, {"Loop"}, {"Global", "Thread"}, {"Warp"}, {"Local", "GroupReduce"}, {"Upcast"}, {"Reduce"}, {"Unroll"},
    ]  # fmt: skip
    assert (min(levels), max(levels)) == (-2, 5)
    assert set(REDUCE_OPS) == {Op.Add, Op.Mul, Op.Max, Op.Min}


def test_images_are_left_alone_by_stage_13() -> None:
    x = V("x", 0, 3)
    plain, table = argument(2, 4).index(x), argument(3, 4, d.index).index(x)

    def sample(*places: UOp) -> UOp:
        return UOp.new(Op.Custom, places, "sample({0})", d.f32)

    for picture in (UOp.new(Op.Param, (), 0, d.image), argument(0, 8, d.image)):
        for place in (picture.index(x), picture.index(x, x), picture.index((x < 2).where(x, UOp.invalid_at()))):
            after = run(STAGES[12], UOp.sink(argument(1, 4).index(x).store(sample(place) + plain)), host()).toposort()
            assert place in after
            assert [u.src[0] for u in after if u.op is Op.Load] == [plain]
            loaded = run(
                STAGES[12], UOp.sink(argument(1, 4).index(x).store(sample(place.load()) + plain)), host()
            ).toposort()
            assert [u.src[0] for u in loaded if u.op is Op.Load] == [place, plain]
        gathered = run(
            STAGES[12], UOp.sink(argument(1, 4).index(x).store(sample(picture.index(table)))), host()
        ).toposort()
        assert picture.index(table.load()) in gathered
        assert [u.src[0] for u in gathered if u.op is Op.Load] == [table]
