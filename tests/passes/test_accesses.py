"""The helpers of rules/vector/devectorize.rules: which lanes are neighbours, on every kind of target."""

from __future__ import annotations

import random

import pytest

from morok.dsl import parse
from morok.errors import HelperContractError
from morok.ir import interpret
from morok.ir.dtype import dtypes
from morok.ir.morok_dialect import MOROK
from morok.ir.op import Op
from morok.ir.uop import UOp, vconst
from morok.passes import access_widths as A
from morok.passes import steps
from morok.passes.access_widths import Widths
from morok.passes.pipeline import WIDTHS
from morok.passes.target import Target
from morok.rewrite.asserted_contracts import check_call
from morok.rewrite.library import rules_dir
from tests.passes import kernels as K

externs = {e.name: e for e in parse.parse_file(rules_dir() / "vector" / "devectorize.rules").externs}
f32, i32, index = dtypes.f32, dtypes.i32, dtypes.index
X = UOp.var("x", index, 0, 9)
BASE = X * 4


def widths(target: Target = K.AVX2, mode: int = 1) -> Widths:
    return Widths.of(UOp.sink(), target, steps.simplify, mode)


def test_offsets_are_what_lanes_lie_apart() -> None:
    for i in (
        UOp.vectorize(X, X, X) + vconst(index, [2, 0, 1]),
        UOp.vectorize(X + 1, X, X + 5),
        UOp.vectorize((X * 2 + 1) // 2, X),  # by the symbolic rules
        vconst(index, [3, 1]),
    ):
        found = A.offsets(i, widths())
        assert found is not None
        check_call(externs["offsets"], MOROK, (i,), found)
    assert A.offsets(UOp.vectorize(X, UOp.var("y", index, 0, 9)), widths()) is None
    assert A.offsets(UOp.var("i", index.vec(4), 0, 9), widths()) is None


def test_a_wrong_offset_breaks_the_contract() -> None:
    i = UOp.vectorize(X, X + 1)
    with pytest.raises(HelperContractError, match="offsets"):
        check_call(externs["offsets"], MOROK, (i,), (X, (0, 2)))


def test_lanes_taken_out_of_a_vector_are_its_lanes() -> None:
    """The contract is asserted on what they are, and not on any numbers within their bounds."""
    thirds = (UOp.vectorize(*[X * 3] * 4) + vconst(index, range(4))) // 3
    i = UOp.vectorize(thirds.gep(0) + 1, thirds.gep(3))
    found = A.offsets(i, widths())
    assert found is not None
    assert found[1][0] == found[1][1]
    check_call(externs["offsets"], MOROK, (i,), found)
    with pytest.raises(HelperContractError, match="offsets"):
        check_call(externs["offsets"], MOROK, (i,), (X, (1, 2)))


def test_a_contract_that_names_no_lanes_is_about_any_of_them() -> None:
    """A sum of vectors is no sequence behind another."""
    merged = next(e for e in parse.parse_file(rules_dir() / "index" / "order.rules").externs if e.name == "merged")
    x, y = vconst(index, [0, 64]), UOp.vectorize(X, X)
    check_call(merged, MOROK, (x, y), y + x)


def test_gates_are_alike_where_they_are_one_node() -> None:
    p, q = UOp.var("p", dtypes.bool), UOp.var("q", dtypes.bool)
    for g in (UOp.vectorize(p, q, p, q), vconst(dtypes.bool, [True, False, True]), UOp.const(True, dtypes.bool.vec(2))):
        found = A.alike(g, widths())
        assert found is not None
        check_call(externs["alike"], MOROK, (g,), found)
    assert A.alike(UOp.var("g", dtypes.bool.vec(4)), widths()) is None


@pytest.mark.long
@pytest.mark.parametrize("target", [K.AVX2, K.GPU, K.SCALAR], ids=lambda t: t.name)
def test_runs_keep_their_contracts(target: Target) -> None:
    """Places in any order, some twice, behind one gate or several; aligned accesses where the target asks for them."""
    rng, w = random.Random(1), widths(target)
    for _ in range(60):
        n = rng.choice((2, 3, 5, 9))
        at = tuple(rng.sample(range(n + 2), n)) if rng.random() < 0.5 else tuple(rng.randrange(6) for _ in range(n))
        same = () if rng.random() < 0.5 else (0, *[rng.choice((0, k)) for k in range(1, n)])
        v = UOp.var("v", f32.vec(n))
        found = A.runs(at, same, BASE, v, w)
        check_call(externs["runs"], MOROK, (at, same, BASE, v), found)
        widest = A.widest(v, w)
        assert all(len(run) <= widest for run in found[0])
        if target.aligned:
            assert all(at[run[0]] % len(run) == 0 for run in found[0])
        stored = A.last_runs(at, same, BASE, v, w)
        check_call(externs["last_runs"], MOROK, (at, same, BASE, v), stored)
        assert (stored is None) == (bool(same) and len({*zip(at, same, strict=True)}) != len(set(at)))


def test_bases_keep_their_contract() -> None:
    y = UOp.var("y", index, 0, 9)
    i = UOp.vectorize(X, y, X + 1, y + 1)
    found = A.bases(i, (), widths())
    assert found == (((0, 2), (1, 3)), (0, 2, 1, 3))
    check_call(externs["bases"], MOROK, (i, ()), found)
    assert A.bases(UOp.var("i", index.vec(4), 0, 9), (), widths()) is None


def test_widths_of_modes() -> None:
    wide = UOp.var("v", f32.vec(64)) + UOp.const(1.0, f32.vec(64))
    assert A.at_once(wide, widths()) == 8
    assert A.at_once(wide, widths(mode=0)) == A.WIDEST
    assert A.at_once(wide, widths(K.GPU)) == 1
    assert A.at_once(wide.src[0], widths()) == 0
    assert A.widest(wide, widths()) == 8
    assert A.widest(wide, widths(mode=2)) == A.WIDEST


def test_what_registers_were_folded_into_stays_whole() -> None:
    from morok.ir.dtype import AddrSpace

    register = UOp.new(Op.DefineReg, (), 0, f32.vec(8).ptr(1, AddrSpace.REG)).index(0).load()
    assert A.at_once(register + register, widths()) == 0
    assert A.at_once(register + UOp.var("v", f32.vec(8)), widths()) == 8


def test_lanes_that_may_share_a_place_are_stored_in_their_order() -> None:
    """Through two indices of which nothing is known: the last lane stays wherever they are one."""
    y, z = UOp.var("y", index, 0, 3), UOp.var("z", index, 0, 3)
    place = UOp.new(Op.DefineGlobal, (), 0, i32.ptr(4)).index(UOp.vectorize(y, z, y))
    before = UOp.sink(place.store(vconst(i32, [7, 8, 9])))
    after = steps.rewrite(before, WIDTHS, 14, bottom_up=True, context=widths())
    assert max(n.dtype.count for n in after.toposort()) == 1
    for at in range(4):
        left: list[dict[int, list[int]]] = []
        for program in (before, after):
            held = {0: [0, 0, 0, 0]}
            interpret.run(program, held, {"y": 1, "z": at})
            left.append(held)
        assert left[0] == left[1]


def test_sections_are_runs_of_lanes_of_one_part() -> None:
    """The contract holds of each answer; and the lanes of a section are those of the part that it names."""
    rng, w, answered = random.Random(5), widths(), 0
    for _ in range(300):
        parts = [
            UOp.var(f"v{k}", f32.vec(n)) if n > 1 else UOp.var(f"v{k}", f32)
            for k, n in enumerate(rng.choices((1, 2, 3, 4), k=3))
        ]
        x = UOp.new(Op.Cat, tuple(parts))
        wanted = tuple(rng.choices(range(x.dtype.count), k=rng.randint(1, 8)))
        found = A.sections(x, wanted, w)
        if found is None:
            continue
        answered += 1
        check_call(externs["sections"], MOROK, (x, wanted), found)
        begins = [sum(s.dtype.count for s in parts[:k]) for k in range(4)]
        cuts, of = found
        for q, part in enumerate(of):
            assert all(begins[part] <= lane < begins[part + 1] for lane in wanted[cuts[q] : cuts[q + 1]])
    assert answered > 200


@pytest.mark.parametrize("wrong", [([0, 1], [0]), ([1, 2], [0]), ([0, 0, 2], [0, 1]), ([0, 2], [-1]), ([0, 2], [0, 1])])
def test_wrong_sections_break_the_contract(wrong: tuple[list[int], list[int]]) -> None:
    x = UOp.new(Op.Cat, (UOp.var("a", f32.vec(2)), UOp.var("b", f32.vec(2))))
    with pytest.raises(HelperContractError, match="sections"):
        check_call(externs["sections"], MOROK, (x, (0, 1)), wrong)
