"""What the settings do to the text: liberties of float arithmetic, fused multiply-add, LLVM's own vectorizer."""

from __future__ import annotations

import pytest
from instruction_lists import Listing, c, i32
from kernels import EXAMPLES

from morok.codegen.cuda import render as render_cuda
from morok.codegen.llvm import render
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.target import Target

f32 = dtypes.f32


def multiply_add(d: DType, op: Op = Op.MulAcc) -> list[UOp]:
    b = Listing()
    out, x = b.buffer(0, d, 4), b.buffer(1, d, 4)
    v = b.load(x, 0, d.vec(4))
    b.store(out, 0, b.add(UOp.new(op, (v, v, v)) if op is Op.MulAcc else v * v + v))
    return b.list


def test_contraction_is_a_flag_on_each_operation() -> None:
    code = multiply_add(f32, Op.Add)
    assert "fmul contract <4 x float>" in render(code, "k").text
    assert "fmul <4 x float>" in render(code, "k", math=frozenset()).text
    assert (
        "fmul arcp contract nsz reassoc <4 x float>"
        in render(code, "k", math=frozenset({"reassoc", "nsz", "arcp", "contract"})).text
    )


def test_fused_multiply_add_needs_the_instruction() -> None:
    assert "@llvm.fma.v4f32" in render(multiply_add(f32), "k", Target("LLVM", fma=True)).text
    assert "@llvm.fma" not in render(multiply_add(f32), "k", Target("LLVM", fma=False)).text
    assert "fmaf(" in render_cuda(multiply_add(f32), "k").text
    assert "__hfma(" in render_cuda(multiply_add(dtypes.f16), "k").text


@pytest.mark.parametrize("name", EXAMPLES)
def test_bf16_never_reaches_llvm(name: str) -> None:
    """LLVM's bfloat would call a function that need not exist."""
    assert "bfloat" not in render(EXAMPLES[name]().listing.list, "k").text


def scalar_loop(n: int, vectors: int = 0) -> list[UOp]:
    """out[i] = 3 * i for i < n, and in a loop of its own out[n + 4 * j ..] = 3 for j < `vectors`."""
    b = Listing()
    out = b.buffer(0, i32, n + 4 * vectors)
    r = b.range(n)
    b.store(out, r, r * 3)
    b.end(r)
    if vectors:
        j = b.range(vectors)
        b.store(out, b.add(j * 4 + n), c(3, i32.vec(4)))
        b.end(j)
    return b.list


def test_only_long_scalar_loops_call_for_llvms_vectorizer() -> None:
    assert render(scalar_loop(1000), "k").scalar_loops
    assert not render(scalar_loop(4), "k").scalar_loops
    assert not render(scalar_loop(100), "k").scalar_loops  # over sooner than a kernel starts
    assert render(scalar_loop(1000, 1000), "k").scalar_loops
    assert not render(scalar_loop(1000, 100_000), "k").scalar_loops
    assert not render(EXAMPLES["elementwise_with_wide_vectors"]().listing.list, "k").scalar_loops


def test_index_arithmetic_within_its_bounds_is_marked() -> None:
    """So that LLVM may use it in other forms; what may wrap is not."""
    b = Listing()
    out, free = b.buffer(0, i32, 100), b.var("n", i32)
    r = b.range(10)
    b.store(out, r, b.add(free * 10))
    b.store(out, r, b.add(r * 10))
    b.end(r)
    text = render(b.list, "k").text
    assert text.count("mul nsw i32") == 1
    assert text.count("mul i32") == 1


def test_the_same_scalar_in_all_lanes_is_a_splat() -> None:
    b = Listing()
    v = f32.vec(8)
    out, x = b.buffer(0, f32, 8), b.buffer(1, f32, 1)
    one = b.load(x, 0)
    b.store(out, 0, b.add(UOp.vectorize(*[one] * 8) * c(2.0, v)))
    text = render(b.list, "k").text
    assert text.count("insertelement") == 1
    assert "<8 x i32> zeroinitializer" in text
    assert "splat (float" in text


def test_loops_carry_only_what_they_read_before_they_set_it() -> None:
    """Two counters, where a row begins, and the accumulator in the inner loop alone, which the outer one sets anew."""
    text = render(EXAMPLES["nested_reductions_restart"]().listing.list, "k").text
    assert text.count(" phi i64") == 3
    assert text.count(" phi float") == 2  # the inner sum in the inner loop, the maximum in the outer


def copied(n: int, more: int) -> list[UOp]:
    """out[i] = in[i], and `more` steps of arithmetic on it, by vectors of four."""
    b = Listing()
    out, x = b.buffer(0, f32, n), b.buffer(1, f32, n)
    r = b.range(n // 4)
    at = b.add(r * 4)
    value = b.load(x, at, f32.vec(4))
    for _ in range(more):
        value = b.add(value + value)
    b.store(out, at, value)
    b.end(r)
    return b.list


def summed(n: int) -> list[UOp]:
    """out[i] = a[i] * b[i] + c[i], by vectors of four."""
    b = Listing()
    out, *operands = [b.buffer(slot, f32, n) for slot in range(4)]
    r = b.range(n // 4)
    at = b.add(r * 4)
    b.store(out, at, b.add(UOp.new(Op.MulAcc, tuple([b.load(x, at, f32.vec(4)) for x in operands]))))
    b.end(r)
    return b.list


@pytest.mark.parametrize(("listing", "effort"), [
    (copied(1024, 0), "plain"),
    (copied(1024, 2), "plain"),
    (copied(1024, 40), "code"),
    (summed(1024), "code"),
    (scalar_loop(1000), "all"),
    (scalar_loop(4), "plain"),
    (summed(64), "plain"),
])  # fmt: skip
def test_what_waits_for_memory_is_left_as_it_stands(listing: list[UOp], effort: str) -> None:
    assert render(listing, "k").effort == effort
