"""The acceptance bullet about hostile inputs: a right answer or a clear error, never a RecursionError, a hang or an abort."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import morok
from acceptance.notation import V, unproved
from morok import Tensor, UOp
from morok import dtypes as d
from morok.dsl.lexer import MAX_BYTES
from morok.errors import IRTypeError, ParseError, RewriteLimitError, RuleEncodingError, RuleError, RuleLimitError
from morok.ir import interpret
from morok.ir.uop import MAX_BITS
from morok.rewrite.engine import graph_rewrite
from morok.tools.cli import main

HEAD = b'group t "test"\n\n'
X = V("x", 0, 31)


@pytest.mark.long
def test_a_chain_of_100_000_nodes() -> None:
    limit = sys.getrecursionlimit()
    assert limit <= 3000
    x, y = UOp.var("x", d.i32), UOp.var("y", d.i32)
    u = x
    for n in range(100_000):
        u = u ^ y if n % 3 else -u
    text = u.text()
    assert len(text) < 2_000_000
    assert morok.parse(text) is u
    want = 12345
    for n in range(100_000):
        want = want ^ 678 if n % 3 else -want
    assert interpret.evaluate(u, {"x": 12345, "y": 678}) == want
    assert sys.getrecursionlimit() == limit


def test_a_long_chain_of_tensors() -> None:
    t = Tensor(np.zeros(4, np.float32))
    for _ in range(1000):
        t = t * 1.0 + 1.0
    assert t.tolist() == [1000.0] * 4


def test_a_diamond_of_twenty_levels() -> None:
    x, y = UOp.var("x", d.i32), UOp.var("y", d.i32)
    u = x
    for n in range(20):
        u = (u + n).max(u ^ n)
    assert len(u.toposort()) < 100
    assert len(u.text()) < 4000
    assert len(u.tree().splitlines()) < 200
    v = u.substitute({x: y})
    s = morok.simplify(u)
    assert interpret.evaluate(v, {"y": 5}) == interpret.evaluate(s, {"x": 5}) == interpret.evaluate(u, {"x": 5})


def test_eight_threads_build_and_simplify_the_same_graphs() -> None:
    start = threading.Barrier(8)
    results: list[list[UOp]] = []
    problems: list[BaseException] = []

    def work() -> None:
        try:
            start.wait()
            x = UOp.var("shared", d.index, 0, 99)
            results.append([morok.simplify((x * (n + 2) + n % 2) // (n + 2) + (x + 0) * 3) for n in range(200)])
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not problems
    assert len(results) == 8
    for other in results[1:]:
        assert all(a is b for a, b in zip(results[0], other, strict=True))


def test_a_pair_that_oscillates() -> None:
    with pytest.raises(RewriteLimitError) as caught:
        graph_rewrite(X + X, unproved("there: Add(x: index, x) ~> Mul(x, 2)\nback: Mul(x: index, 2) ~> Add(x, x)"))
    assert "t.there" in str(caught.value)
    assert "t.back" in str(caught.value)


def hostile() -> dict[str, tuple[bytes, type[Exception], str]]:
    deep = b"Neg(" * 10_000 + b"x: i32" + b")" * 10_000
    minus = b"a: Add(x: i32, @const(c)) if c == " + b"-" * 10_000 + b"c ~> x\n"
    return {
        "too large": (HEAD + b"# " + b"x" * MAX_BYTES + b"\n", RuleLimitError, "MRK104"),
        "nested 10,000 deep": (HEAD + b"a: " + deep + b" ~> x\n", RuleLimitError, "MRK104"),
        "only opened": (HEAD + b"a: " + b"Neg(" * 10_000, RuleError, "MRK10"),
        "only closed": (HEAD + b"a: " + b")" * 10_000, RuleError, "MRK10"),
        "nested brackets": (HEAD + b"a: Vectorize" + b"[" * 10_000 + b" ~> x\n", RuleError, "MRK10"),
        "10,000 signs": (HEAD + minus, RuleError, "MRK10"),
        "a NUL byte": (HEAD + b"a: Add(x: i32,\0 y) ~> x\n", RuleEncodingError, "MRK105"),
        "invalid UTF-8": (HEAD + b"a: Add(x: i32, \xff\xfe) ~> x\n", RuleEncodingError, "MRK105"),
        "a lone surrogate": (HEAD + b"a: Add(x: i32, \xed\xa0\x80) ~> x\n", RuleEncodingError, "MRK105"),
        "a long number": (HEAD + b"a: Add(x: i32, " + b"9" * 100_000 + b") ~> x\n", RuleError, "MRK10"),
        "a long shift": (HEAD + b"a: Add(x: i32, @const(c)) if c == 1 << 100000000 ~> x\n", RuleError, "MRK"),
        "a thousand rules of one mistake": (HEAD + b"a: Addd(x) ~> x\n" * 1000, RuleError, "MRK10"),
    }


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", hostile())
def test_hostile_rule_files(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, kind, code = hostile()[name]
    file = tmp_path / "hostile.rules"
    file.write_bytes(content)
    status = main(["check", str(file)])
    said = capsys.readouterr().err
    if name == "a long shift":  # no mistake of form: a clause without a value never holds
        assert status in (0, 2)
        assert main(["prove", str(file)]) in (1, 2, 3)
        return
    assert status == 2
    assert code in said
    assert str(file) in said
    assert "Traceback" not in said
    assert len(said) < 200_000
    with pytest.raises(kind):
        morok.load_rules(file)


@pytest.mark.parametrize(
    "text", ["(" * 10_000, "Neg(" * 10_000, "Neg(x: i32)" + ")" * 10_000, "\0", "x: i32[0..=1e999]", "%1", "", "\ud800"]
)
def test_hostile_expressions(text: str) -> None:
    with pytest.raises(ParseError):
        morok.parse(text)


def test_a_deep_expression_is_no_mistake() -> None:
    u = morok.parse("Neg(" * 10_000 + "x: i32" + ")" * 10_000)
    assert len(u.toposort()) == 10_001


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
def test_division_by_zero_and_overflow_give_numpys_results(name: str) -> None:
    info = np.iinfo(name)
    minus_one = np.array(-1).astype(name)
    a = np.array([info.min, info.min, info.max, 0, 7, 7, info.min, 5], name)
    b = np.array([minus_one, 0, 0, 0, 0, minus_one, 1, 3], name)
    for i in range(2):
        with np.errstate(all="ignore"):
            want = (a // b, a % b)[i]
            by_zero, by_minus = (a // 0, a % 0)[i], (a // minus_one, a % minus_one)[i]
        x, y = Tensor(a), Tensor(b)
        np.testing.assert_array_equal((x // y, x % y)[i].numpy(), want)
        np.testing.assert_array_equal((x // 0, x % 0)[i].numpy(), by_zero)
        if info.min < 0:
            np.testing.assert_array_equal((x // -1, x % -1)[i].numpy(), by_minus)


def test_constants_of_dtype_index_have_a_limit() -> None:
    """Squares of squares double their length: the rules that fold them end in an error that says why."""
    x = UOp.const(3)
    for _ in range(34):
        x = x.mul(x)
    with pytest.raises(IRTypeError, match=r"constant of dtype index of .* bits"):
        morok.simplify(x)
    most = (1 << MAX_BITS) - 1
    assert UOp.const(-most, d.index).arg == -most
    for build in (UOp.const, lambda v: UOp.const(v, d.index.vec(4)), lambda v: UOp.const([0, v], d.index.vec(2))):
        with pytest.raises(IRTypeError, match="bits"):
            build(most + 1)
    assert UOp.const(most + 1, d.i32).arg == 0  # of a fixed width it wraps
