"""Built-in rules that decline beyond the sizes of their proofs: programs do without them there, and use them within."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from morok.dsl.instance import Checks
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.passes.pipeline import lower
from morok.prove import ledger
from morok.rewrite import folders, library
from morok.rewrite.trace import Trace, tracing
from tests.passes import kernels as K

f16, f64, i8, index = dtypes.f16, dtypes.f64, dtypes.i8, dtypes.index


def masked(n: int, value: float) -> UOp:
    """out[i] = i < n - 3 ? a[i] : value"""
    r = K.loop(n, 0)
    read = K.buffer(1, n).index(r).load()
    return K.kernel(K.buffer(0, n).index(r).store((r < n - 3).where(read, UOp.const(value, read.dtype))).end(r))


def single(n: int) -> UOp:
    """Loops of one iteration, around others and inside them."""
    ranges = [K.loop(m, i) for i, m in enumerate((1, n, 1))]
    place = ranges[1] + ranges[0] + ranges[2]
    value = K.buffer(1, n).index(place).load() + 1.0
    return K.kernel(K.buffer(0, n).index(place).store(value).end(*ranges))


PROGRAMS = {
    "elementwise": K.elementwise(1000),
    "halves": K.elementwise(1000, f16),
    "bytes": K.elementwise(1000, i8),
    "total": K.total(4096),
    "rows": K.rows(6, 240),
    "greatest": K.rows(64, 48, Op.Max, f64),
    "columns": K.columns(48, 64),
    "matmul": K.matmul(32, 16, 64),
    "turned": K.matmul_turned(16, 16, 16),
    "pad": K.pad(370, 2, 3),
    "flip": K.flip(256),
    "transpose": K.transpose(32, 48),
    "scan": K.scan(8, 64),
    "normalize": K.normalize(16, 80),
    "gather": K.gather(64, 32),
    "positions": K.positions(100),
    "divide": K.divide(100),
    "masked": masked(256, 0.0),
    "masked otherwise": masked(256, 2.0),
    "single": single(64),
}
TARGETS = {"CPU": K.CPU, "AVX2": K.AVX2_WITHOUT, "GPU": K.GPU, "scalar": K.SCALAR}


def limited() -> set[str]:
    """The built-in rules that decline beyond the sizes of their proofs."""
    found: set[str] = set()
    for path in folders.rules_folder().rglob("*.rules"):
        limits = ledger.sealed(path, path.read_bytes())
        assert limits is not None
        found |= set(limits)
    return found


@pytest.fixture
def declined(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The rules that were matched beyond the sizes of their proofs, and declined."""
    found: set[str] = set()

    def stands_in(checks: Checks, root: UOp, result: UOp, rule: str, leaves: object) -> bool:
        found.add(rule)
        return False

    monkeypatch.setattr(Checks, "stands_in", stands_in)
    monkeypatch.setattr(library, "_sets", {})  # matchers that exist know the method
    return iter([found])


@pytest.mark.long
def test_no_program_needs_a_limited_rule_beyond_its_proof(declined: Iterator[set[str]]) -> None:
    found, trace = next(declined), Trace()
    with tracing(trace):
        for ast in PROGRAMS.values():
            for target in TARGETS.values():
                lower(ast, target)
    rules = limited()
    assert rules
    assert sorted(found & rules) == []
    assert len(trace.firings) > 1000


def test_a_limited_rule_fires_within_its_proof_alone(declined: Iterator[set[str]]) -> None:
    """Four indices behind one another are one more than the proof of `nested` has."""
    found = next(declined)
    nested = library.groups("nested_index")
    i = UOp.var("i", dtypes.index, 0, 3)
    for n in range(1, 7):
        place = UOp.new(Op.Param, dtype=dtypes.f32, arg=0).index(*[i] * n)
        hit = nested.rewrite_node(place.index(i))
        assert (hit is not None) == (n <= 3), n
    assert found == {"nested_index.nested"}
