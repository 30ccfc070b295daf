"""Hand-written kernels: LLVM and CUDA compute what the interpreter does on the same list."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_runner import build, launch
from instruction_lists import Listing, c, i32, special
from kernels import EXAMPLES, GPU, Example
from nvrtc import compile_ptx
from values import bits, decode, encode

from morok import config
from morok.codegen.cuda import render as render_cuda
from morok.codegen.llvm import render as render_llvm
from morok.codegen.rendered import Rendered
from morok.errors import CompileError
from morok.ir.dtype import dtypes
from morok.ir.interpret import run_instructions
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.runtime.buffer import Buffer
from morok.runtime.device import device
from morok.runtime.jit import parse

f32 = dtypes.f32
TOO_LARGE = "a_local_buffer_too_large_for_the_stack"  # and for a GPU's shared memory
ON_GPU = {name: make for name, make in {**EXAMPLES, **GPU}.items() if name != TOO_LARGE}


def interpreted(e: Example) -> dict[int, list[Any]]:
    memory = {slot: list(values) for slot, (_, values) in e.buffers.items()}
    run_instructions(e.listing.list, memory, e.variables)
    return memory


def arrays_of(e: Example) -> dict[int, np.ndarray]:
    return {slot: encode(d, values) for slot, (d, values) in e.buffers.items()}


def same(e: Example, arrays: dict[int, np.ndarray]) -> None:
    want = interpreted(e)
    for slot, (d, _) in e.buffers.items():
        assert [bits(d, v) for v in decode(d, arrays[slot])] == [bits(d, v) for v in want[slot]], f"buffer {slot}"


@pytest.mark.parametrize("name", EXAMPLES)
def test_llvm_agrees_with_the_interpreter(name: str) -> None:
    e = EXAMPLES[name]()
    arrays = arrays_of(e)
    cpu = device("CPU")
    with config.settings(fast_math=""):
        kernel = cpu.compile(e.listing.list, name)
    buffers = [Buffer.wrap(cpu, arrays[slot], e.buffers[slot][0]) for slot in sorted(arrays)]
    kernel.launch(buffers, e.variables)
    same(e, arrays)


@pytest.mark.parametrize("name", EXAMPLES)
def test_llvm_verifies_the_text(name: str) -> None:
    e = EXAMPLES[name]()
    for math in (frozenset[str](), frozenset({"contract"}), frozenset({"reassoc", "nsz", "arcp", "contract", "afn"})):
        parse(render_llvm(e.listing.list, name, math=math).text)


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> tuple[ctypes.CDLL, dict[str, Rendered]]:
    texts = {name: render_cuda(make().listing.list, name) for name, make in ON_GPU.items()}
    options = ("-fsanitize=undefined", "-fno-sanitize-recover=undefined", "-fno-sanitize=alignment")
    return build(list(texts.values()), tmp_path_factory.mktemp("cuda"), "-O1", options), texts


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("name", ON_GPU)
def test_cuda_agrees_with_the_interpreter(
    name: str, backwards: bool, cuda: tuple[ctypes.CDLL, dict[str, Rendered]]
) -> None:
    library, texts = cuda
    e = ON_GPU[name]()
    arrays = arrays_of(e)
    launch(library, texts[name], [arrays[slot] for slot in sorted(arrays)], e.variables, backwards)
    same(e, arrays)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ON_GPU)
def test_nvrtc_accepts_the_text(name: str, cuda: tuple[ctypes.CDLL, dict[str, Rendered]]) -> None:
    compile_ptx(cuda[1][name].text, name)


def test_accumulators_are_never_memory() -> None:
    for name in ("sum_in_a_register", "matmul_register_tile", "register_of_vectors", "branches_change_registers"):
        text = render_llvm(EXAMPLES[name]().listing.list, name).text
        assert "alloca" not in text
        assert " phi " in text


def test_cuda_loads_are_as_wide_as_alignment_is_known() -> None:
    wide = render_cuda(EXAMPLES["elementwise_with_wide_vectors"]().listing.list, "k").text
    assert "*(const float4*)(data1 + " in wide
    assert "*(float4*)(data0 + " in wide
    narrow = render_cuda(EXAMPLES["unaligned_vectors"]().listing.list, "k").text
    assert "*(const float4*)(data1" not in narrow
    assert "*(float4*)(data0" in narrow


def test_cuda_launch_dimensions_come_from_the_hardware_indices() -> None:
    rendered = render_cuda(GPU["block_sum_by_a_tree"]().listing.list, "k")
    assert [int(d.arg) for d in rendered.grid] == [1, 3, 1]
    assert [int(d.arg) for d in rendered.block] == [16, 1, 1]
    assert "__launch_bounds__(16)" in rendered.text
    assert "__shared__" in rendered.text
    assert rendered.text.count("__syncthreads();") == 4


def test_cuda_says_when_shared_memory_does_not_suffice() -> None:
    with pytest.raises(CompileError, match="96000 bytes of shared memory"):
        render_cuda(EXAMPLES[TOO_LARGE]().listing.list, "k")


def test_cuda_grid_of_a_variable() -> None:
    from morok.runtime.gpu import dimension

    b = Listing()
    out = b.buffer(0, f32, 100)
    n = b.var("n", i32, 1, 25)
    g = b.add(UOp.new(Op.Special, (n * 4,), "gidx0"))
    b.store(out, g, c(1.0, f32))
    rendered = render_cuda(b.list, "k")
    assert dimension(rendered.grid[0], {"n": 6}) == 24


@pytest.mark.long
def test_a_missing_barrier_shows(tmp_path: Path) -> None:
    """The tests' own machine: without its barrier the reversal differs by the order of threads."""
    e = GPU["reversal_through_shared_memory"]()
    rendered = render_cuda(e.listing.list, "unsafe")
    broken = Rendered(
        "unsafe",
        "CUDA",
        rendered.text.replace("__syncthreads();", ""),
        rendered.args,
        grid=rendered.grid,
        block=rendered.block,
    )
    library = build([broken], tmp_path)
    results = []
    for backwards in (False, True):
        arrays = arrays_of(e)
        launch(library, broken, [arrays[0], arrays[1]], backwards=backwards)
        results.append(arrays[0].tolist())
    assert results[0] != results[1]


@pytest.mark.long
def test_shared_memory_is_poison_when_a_block_begins(tmp_path: Path) -> None:
    """The tests' own machine: a block that reads what it has not stored gets no number that one before it left there."""
    b = Listing()
    out, shared = b.buffer(0, f32, 8), b.local(0, f32, 2)
    g, t = b.add(special("gidx0", 4)), b.add(special("lidx0", 2))
    place = shared.after(b.add(UOp.new(Op.Barrier, (b.store(shared, t, c(1.0, f32), gate=g < c(1)),)))).index(t)
    b.store(out, g * 2 + t, b.add(UOp.new(Op.Load, (place,))))
    rendered = render_cuda(b.list, "forgetful")
    library = build([rendered], tmp_path)
    for backwards in (False, True):
        got = np.zeros(8, np.float32)
        launch(library, rendered, [got], backwards=backwards)
        assert got[:2].tolist() == [1.0, 1.0]
        assert np.all(np.isnan(got[2:]) | (got[2:] > 1e38))


def test_a_false_gate_touches_no_memory() -> None:
    """The element behind the buffer lies on a page that cannot be read."""
    page = mmap.PAGESIZE
    region = mmap.mmap(-1, 2 * page)
    whole = np.frombuffer(region, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(whole.ctypes.data + page), page, 0) == 0
    b = Listing()
    v = f32.vec(4)
    out, x = b.buffer(0, f32, 32), b.buffer(1, f32, 8)
    r = b.range(4)
    inside = r < c(2)
    lanes = b.add(UOp.vectorize(*[r * 4 + k for k in range(4)]))
    b.store(out, r * 4, b.load(x, r * 4, v, gate=inside, alt=c(3.0, v)))
    b.store(out, r * 4 + 16, b.load(x, lanes, v, gate=lanes < c(6, i32.vec(4))))
    b.store(x, r * 4, c(1.0, v), gate=inside)
    b.end(r)
    try:
        inputs = whole[page - 32 : page].view(np.float32)
        inputs[:] = np.arange(8)
        result = np.zeros(32, np.float32)
        cpu = device("CPU")
        cpu.compile(b.list, "guarded").launch([Buffer.wrap(cpu, result), Buffer.wrap(cpu, inputs)])
        assert result[:16].tolist() == [0, 1, 2, 3, 4, 5, 6, 7] + [3.0] * 8
        assert inputs.tolist() == [1.0] * 8
    finally:
        assert libc.mprotect(ctypes.c_void_p(whole.ctypes.data + page), page, 3) == 0


@pytest.mark.parametrize("render", [render_llvm, render_cuda], ids=["LLVM", "CUDA"])
def test_what_cannot_be_rendered_is_a_compile_error(render: Any) -> None:
    b = Listing()
    out = b.buffer(0, f32, 4)
    r = b.range(4)
    with pytest.raises(CompileError, match="never closed"):
        render([*b.list], "k")
    b.store(out, r, c(0.0, f32))
    b.end(r)
    with pytest.raises(CompileError, match="no code for Reduce"):
        render([*b.list, c(0.0, f32).reduce(Op.Add, r)], "k")
    place = out.index(c(0))
    double = place.load() + place.load()
    with pytest.raises(CompileError, match="before it is computed"):
        render([out, c(0), place, double, place.store(double)], "k")
    with pytest.raises(CompileError, match="DefineGlobal is used before it is computed"):
        render([c(0), c(0.0, f32), place, place.store(c(0.0, f32)), out], "k")


@pytest.mark.parametrize("render", [render_llvm, render_cuda], ids=["LLVM", "CUDA"])
def test_loops_and_branches_close_from_the_inside_out(render: Any) -> None:
    b = Listing()
    r = b.range(4)
    branch = b.if_(r < c(2))
    endif = UOp.new(Op.EndIf, (branch,))
    end = endif.end(r)
    render([*b.list, endif, end], "k")
    with pytest.raises(CompileError, match="an End closes another loop"):
        render([*b.list, end, endif], "k")
    with pytest.raises(CompileError, match="an EndIf without its If"):
        render([*b.list, endif, endif, end], "k")
    with pytest.raises(CompileError, match="an EndIf without its If"):
        render([endif], "k")
