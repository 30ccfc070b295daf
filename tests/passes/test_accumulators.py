"""The helpers of rules/loops/accumulate.rules: registers that nothing else knows of, and how results are spread over them."""

from __future__ import annotations

import pytest

import morok
from morok import config
from morok.dsl import parse
from morok.errors import LoweringError
from morok.ir.dtype import dtypes
from morok.ir.morok_dialect import MOROK
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.accumulators import Accumulators, accumulator, partial_results, register_lanes, results_at_once
from morok.passes.reduce import separate_loops
from morok.passes.target import Target
from morok.rewrite import library
from morok.rewrite.asserted_contracts import check_call
from morok.rewrite.library import rules_dir
from tests.passes import kernels as K

externs = {e.name: e for e in parse.parse_file(rules_dir() / "loops" / "accumulate.rules").externs}
FOUR = Target("", vector_bytes=16)


def test_a_register_is_new_and_inside_the_open_loops() -> None:
    i, r = K.loop(4, 0), K.fold(8, 1)
    first = K.buffer(1, 32).index(i * 8 + r).reduce(Op.Add, r)
    found = Accumulators.of(first, FOUR)
    register = accumulator(first, first.src[0], found)
    check_call(externs["accumulator"], MOROK, (first, first.src[0]), register)
    assert register.ranges == frozenset({i})
    body = register.index(0).load() + K.buffer(1, 32).index(i * 8 + r)
    again = accumulator(body.reduce(Op.Add, r), body, Accumulators.of(body, FOUR))
    check_call(externs["accumulator"], MOROK, (first, body), again)
    assert again.src[0] is not register.src[0]


def test_partial_results_divide_what_is_folded() -> None:
    for results in (1, 2, 3, 4, 5):
        for folded in (1, 2, 3, 5, 7, 8, 12, 35, 64):
            s = UOp.var("s", dtypes.f32.vec(results * folded))
            n = UOp.new(Op.Reduce, (s,), Op.Add, dtypes.f32.vec(results))
            assert folded % partial_results(n, s, Accumulators(FOUR, 0)) == 0
    assert register_lanes(UOp.var("x", dtypes.f64), Accumulators(FOUR, 0)) == 2
    assert register_lanes(UOp.var("x", dtypes.i8), Accumulators(FOUR, 0)) == 4  # arithmetic widens it


def test_one_accumulator_holds_all_results_that_each_get_one_term() -> None:
    """Stage 19 cuts it. Where lanes are folded, or arithmetic is scalar, results are apart from the start."""
    n, s, two = (UOp.var(name, dtypes.f32.vec(k)) for name, k in (("n", 12), ("s", 12), ("t", 24)))
    assert results_at_once(n, s, Accumulators(FOUR, 0)) == 12
    assert results_at_once(n, two, Accumulators(FOUR, 0)) == 4
    assert results_at_once(n, s, Accumulators(K.SCALAR, 0)) == 1


def test_what_is_added_to_a_product_of_matrices_its_instruction_adds() -> None:
    """WMMA(a, b, c) + d is WMMA(a, b, c + d): of floats where reassociation is permitted."""
    for d, permitted, fused in ((dtypes.i32, (), True), (dtypes.f32, (), False), (dtypes.f32, ("reassoc",), True)):
        a, b, c, other = (UOp.var(name, d.vec(4)) for name in "abcd")
        product = UOp.new(Op.Wmma, (a, b, c), "4x4x4")
        with config.settings(fast_math=frozenset(permitted)):
            for total in (product + other, other + product):
                out = morok.rewrite(total, library.group("tensor_cores"))
                assert out is (UOp.new(Op.Wmma, (a, b, out.src[2]), "4x4x4") if fused else total)
                assert not fused or set(out.src[2].src) == {c, other}


MOST = (2**63 - 1) // 7


@pytest.mark.parametrize(
    ("op", "low", "high", "count", "fits"),
    [
        (Op.Add, 0, MOST, 7, True),
        (Op.Add, 0, MOST + 1, 7, False),
        (Op.Add, -MOST, 0, 7, True),
        (Op.Add, -MOST - 1, 0, 7, False),
        (Op.Mul, -2, 2, 62, True),
        (Op.Mul, -2, 2, 63, False),
        (Op.Mul, -1, 1, 10**6, True),
        (Op.Max, -(2**63), 2**63 - 1, 10**6, True),
    ],
)
def test_a_fold_of_indices_is_exact_or_refused(op: Op, low: int, high: int, count: int, fits: bool) -> None:
    """Registers hold i64: by the bounds every partial result must fit."""
    r = K.fold(count, 0)
    total = UOp.new(Op.Reduce, (UOp.var("n", dtypes.index, low, high), r), op)
    ast = K.kernel(K.buffer(0, 1, dtypes.i64).index(0).store(total.cast(dtypes.i64)))
    if fits:
        assert Op.Reduce not in [n.op for n in separate_loops(ast).toposort() if n.dtype.is_index]
    else:
        with pytest.raises(LoweringError, match="may not fit i64"):
            separate_loops(ast)
