"""8-bit floats: all 256 codes of both, by the evaluator, as machine code and as CUDA C; tensors store them and compute in f16."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from codegen.cuda_runner import Program, build

from morok import Tensor, dtypes
from morok.ir.dtype import DType
from morok.ir.number import from_bits, to_bits
from morok.ir.op import TABLE, Op

KINDS = {dtypes.f8e4m3: ml_dtypes.float8_e4m3fn, dtypes.f8e5m2: ml_dtypes.float8_e5m2}
CODES = np.arange(256, dtype=np.uint8)
HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
cast = TABLE[Op.Cast].evaluate


def ids(d: DType) -> str:
    return d.name


def same(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    """Bit for bit, NaN as NaN."""
    np.testing.assert_array_equal(found, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))


def theirs(d: DType, wide: type) -> np.ndarray[Any, Any]:
    return CODES.view(KINDS[d]).astype(np.float32).astype(wide)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("d", KINDS, ids=ids)
@pytest.mark.parametrize("wide", [np.float16, np.float32, np.float64])
def test_every_code_read(d: DType, wide: type) -> None:
    wanted = theirs(d, wide)
    target = {np.float16: dtypes.f16, np.float32: dtypes.f32, np.float64: dtypes.f64}[wide]
    assert cast is not None
    evaluated = np.array([cast(target, from_bits(d, int(c)), d) for c in CODES], wide)
    same(evaluated, wanted)
    same(Tensor(CODES).bitcast(d).cast(target).numpy(), wanted)
    same(Tensor(CODES).bitcast(d).numpy().astype(wide), wanted)


def written(d: DType, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The codes that ml_dtypes rounds to; NaN has one code here, whatever its sign."""
    with np.errstate(all="ignore"):
        out = values.astype(np.float32).astype(KINDS[d])
    return out.astype(np.float32)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("d", KINDS, ids=ids)
def test_every_half_rounded(d: DType) -> None:
    """All 65,536 halves, as f32: the evaluator on every seventh and all that are small."""
    wanted = written(d, HALVES)
    found = Tensor(HALVES).cast(dtypes.f32).cast(d)
    same(found.numpy(), wanted)
    codes = found.bitcast(dtypes.u8).numpy()
    same(codes.view(KINDS[d]).astype(np.float32), wanted)
    assert cast is not None
    for k in range(0, 1 << 16, 7):
        v = cast(d, float(HALVES[k]), dtypes.f32)
        assert v == wanted[k] or (v != v and wanted[k] != wanted[k]), HALVES[k]
        assert to_bits(d, v) == codes[k] or v != v


@pytest.mark.sampled(2)
@pytest.mark.parametrize("d", KINDS, ids=ids)
def test_every_pair_in_f16(d: DType) -> None:
    """Sums and products of every code with every other are those of the halves that they are."""
    x = Tensor(CODES).bitcast(d)
    a = theirs(d, np.float16)
    with np.errstate(all="ignore"):
        for ours, wanted in (
            (x.reshape(256, 1) + x, a[:, None] + a),
            (x.reshape(256, 1) * x, a[:, None] * a),
            (-x, -a),
            (x.maximum(0.5), np.maximum(a, np.float16(0.5))),
            (abs(x), abs(a)),
            (x.floor(), np.floor(a)),
            (x.ceil(), np.ceil(a)),
            (x.trunc(), np.trunc(a)),
            (x.round(), np.round(a)),
        ):
            assert ours.dtype is dtypes.f16
            same(ours.numpy(), wanted)
        np.testing.assert_array_equal((x.reshape(256, 1) < x).numpy(), a[:, None] < a)
        for found, is_so in ((x.isinf(), np.isinf(a)), (x.isfinite(), np.isfinite(a)), (x.isnan(), np.isnan(a))):
            np.testing.assert_array_equal(found.numpy(), is_so)


@pytest.mark.long
@pytest.mark.parametrize("d", KINDS, ids=ids)
def test_tensors_of_codes_move(d: DType) -> None:
    x, a = Tensor(CODES).bitcast(d), theirs(d, np.float32)
    same(x.reshape(16, 16).permute(1, 0).contiguous().numpy(), a.reshape(16, 16).T)
    same(x.pad(((1, 3),)).numpy(), np.pad(a, (1, 3)))
    same(x[Tensor([3, -1, 200])].numpy(), a[[3, -1, 200]])
    same((Tensor(CODES) > 99).where(x, 1.0).numpy(), np.where(CODES > 99, a, 1))
    same(Tensor.concat([x, x.flip(0)]).numpy(), np.concatenate([a, a[::-1]]))
    assert Tensor([1.0, 2.5], dtype=d).tolist() == [1.0, 2.5]
    few = x[:100].reshape(10, 10)
    np.testing.assert_allclose(few.sum(1).numpy(), a[:100].reshape(10, 10).sum(1), rtol=1e-3)
    low = a[:64].reshape(8, 8)
    np.testing.assert_allclose((x[:64].reshape(8, 8) @ x[:64].reshape(8, 8)).numpy(), low @ low, rtol=2e-3)
    assert few.max().item() == a[:100].max()
    assert few.argmax().item() == a[:100].argmax()


@pytest.mark.long
def test_every_code_on_cuda(tmp_path: Path) -> None:
    """Reading and rounding, by the text that a GPU gets, run on the CPU."""
    wide = np.concatenate([HALVES[::5], theirs(dtypes.f8e4m3, np.float16), theirs(dtypes.f8e5m2, np.float16)]).astype(
        np.float32
    )
    cases: list[tuple[Program, np.ndarray[Any, Any]]] = []
    for d in KINDS:
        read, rounded = Tensor(CODES).bitcast(d).cast(dtypes.f32), Tensor(wide).cast(d).cast(dtypes.f32)
        cases.append((Program.of(f"read_{d.name}", read), theirs(d, np.float32)))
        cases.append((Program.of(f"round_{d.name}", rounded), written(d, wide)))
    library = build([text for p, _ in cases for text in p.texts], tmp_path, "-O1")
    for p, wanted in cases:
        (out,) = p.run(library)
        same(out, wanted)


@pytest.mark.parametrize("d", ["f8e4m3", "f8e5m2"])
def test_numbers_are_not_rounded_to_what_is_only_stored(d: str) -> None:
    """An 8-bit float is computed with as f16, and so is the number beside it: 0.1 as f8e4m3 is off by 1.5 %."""
    x = np.float16([1.0, -2.0, 0.5])
    t = Tensor(x, dtype=d)
    for ours, theirs in [
        (t * 0.1, x * np.float16(0.1)),
        (1.1 - t, np.float16(1.1) - x),
        (t.maximum(0.3), np.maximum(x, 0.3)),
    ]:
        assert ours.dtype is dtypes.f16
        np.testing.assert_array_equal(ours.numpy(), theirs.astype(np.float16))
    assert (t > 0).where(t, 0.5).dtype is t.dtype
