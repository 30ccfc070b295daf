"""Rules `within N ulp`: the measure itself, the verdict, and the record of what the built-in rules become."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from morok.accuracy import judgement, measured_code, measurement, record, ulp
from morok.accuracy.machine_values import launched
from morok.accuracy.record import Measurement, Worst
from morok.accuracy.subject import subject
from morok.accuracy.switch_points import switch_points
from morok.dsl.check import check_file, check_text, partly_checked
from morok.dsl.checked import CheckedRule
from morok.dsl.compiled import Generated
from morok.errors import LedgerError
from morok.ir.dtype import DType, dtypes
from morok.ir.op import Op
from morok.prove import api, ledger
from morok.prove.workers import judge
from morok.rewrite import folders, matchers
from morok.rewrite.ruleset import RuleSet
from morok.tools.cli import main

TEXT = """group g

rough: Exp(x: f32) ~> Exp2(Mul(x, 1.442695)) within 1 ulp
    "off by many ulp where x is large"
generous: Exp(x: f16) ~> Cast(Exp(Cast(x, f32)), f16) within 2 ulp
    "exact enough, but no promise"
exact: Sqrt(x: f32) ~> Exp2(Mul(Log2(x), 0.5)) within 1 ulp
    "square roots are rounded correctly"
guarded: Exp2(x: f16) if bits(dtype(x)) == 32 ~> Cast(Exp2(Cast(x, f32)), f16) within 0.51 ulp
    "never applies"
narrow: Exp2(Cast(x: f16, f32)) ~> Exp2(Cast(x, f32)) within 0.51 ulp
    "of no plain operand"
below: Exp2(Min[x: f16, 0.0]) ~> Cast(Exp2(Min(Cast(x, f32), 0.0)), f16) within 0.51 ulp
    "of an op of an operand and a number"
above: Exp2(Min[x: f16, 0.0]) ~> Cast(Exp2(Cast(x, f32)), f16) within 0.51 ulp
    "wrong above 0"
double: Exp2(Min[x: f64, 0.0]) ~> Cast(Exp2(Cast(Min(x, 0.0), f32)), f64) within 1 ulp
    "exact values of f64 are of one op alone"
deep: Exp2(Min[Max[x: f16, -4.0], 0.0]) ~> Cast(Exp2(Min(Max(Cast(x, f32), -4.0), 0.0)), f16) within 0.51 ulp
    "an op of an op"
sound: Exp2(x: f16) ~> Cast(Exp2(Cast(x, f32)), f16) within 0.51 ulp
    "through f32"
signs: Tan(x: f16) ~> Cast(Tan(Abs(Cast(x, f32))), f16) within 4 ulp
    "loses the sign"
"""
RULES = {r.name.partition(".")[2]: r for r in check_text(TEXT).rules()}
FILE = folders.rules_folder() / "target" / "transcendental.rules"
# measured over all f32 operands, and what is asked of them
EVERYTHING = {"exp2_f32": 1.0, "log2_f32": 1.0, "wave_f32.Sin": 1.5}


@functools.cache
def built_in() -> dict[str, CheckedRule]:
    return {r.name.partition(".")[2]: r for r in check_file(FILE).rules()}


def errors(got: float, wanted: float) -> float:
    return float(ulp.errors(dtypes.f32, np.array([got]), np.array([wanted]))[0])


def test_an_ulp_is_the_distance_of_floats_in_the_binade_of_the_exact_value() -> None:
    assert errors(1.0 + 2.0**-23, 1.0) == 1.0
    assert errors(1.0, 1.0 - 2.0**-30) == 2.0**-6
    assert errors(2.0**-149, 2.0**-150) == 0.5
    assert errors(3.0, 3.0) == 0.0


def test_specials_are_exact_or_infinitely_wrong() -> None:
    inf, nan, most = float("inf"), float("nan"), float(np.finfo(np.float32).max)
    assert errors(nan, nan) == errors(inf, inf) == errors(inf, 2.0**128) == errors(0.0, 0.0) == 0.0
    for got, wanted in ((inf, most), (most, inf), (-inf, inf), (0.0, nan), (nan, 1.0), (-0.0, 0.0), (2.0**-149, 0.0)):
        assert errors(got, wanted) == inf, (got, wanted)


def test_doubles_are_measured_against_more_digits() -> None:
    x = np.array([1.0, -0.0, 1.0])
    got = np.array([np.sin(1.0), -0.0, np.nextafter(np.sin(1.0), 2.0)])
    found = ulp.errors_of_doubles(Op.Sin, (x,), got)
    assert found[0] == found[1] == 0.5
    assert 0.5 < found[2] < 1.5
    assert ulp.errors_of_doubles(Op.Sin, (x[1:2],), np.array([0.0]))[0] == np.inf


@pytest.mark.long
def test_the_samples_are_what_they_are_said_to_be() -> None:
    bits = np.concatenate(list(ulp.sample(dtypes.f32)))
    assert set(range(0, 1 << 32, ulp.STRIDE)) <= set(bits.tolist())
    half = np.concatenate(list(ulp.sample(dtypes.f16)))
    assert np.array_equal(half, np.arange(1 << 16))
    assert next(iter(ulp.everything(dtypes.f32)))[-1] == ulp.CHUNK - 1
    doubles = np.concatenate(list(ulp.sample(dtypes.f64)))
    assert set(doubles.tolist()) <= set(np.concatenate(list(ulp.everything(dtypes.f64))).tolist())


@pytest.mark.parametrize(
    ("name", "verdict", "said"),
    [
        ("rough", "refuted", "ulp off"),
        ("generous", "refuted", "may be off by 1 ulp"),
        ("exact", "refuted", "Sqrt is exact"),
        ("guarded", "inapplicable", "does not apply"),
        ("narrow", "unknown", "op(x, y)"),
        ("below", "approximate", ""),
        ("above", "refuted", "ulp off"),
        ("double", "unknown", "op(x, y)"),
        ("deep", "unknown", "op(x, y)"),
        ("signs", "refuted", "inf ulp off"),
        ("sound", "approximate", ""),
    ],
)
def test_verdicts(name: str, verdict: str, said: str) -> None:
    found = judge(RULES[name], 1, False)
    assert found.verdict == verdict
    assert said in found.message
    assert found.final


BRANCHES = {
    "a number": "Exp2(x: f64) ~> Where(Eq(x, 0.7123456), 0.0, Pow(2.0, x)) within 1 ulp",
    "of 32 bits": "Exp2(x: f32) ~> Where(Eq(x, 0.7123456), 0.0, Pow(2.0, x)) within 1 ulp",
    "beyond a number": "Exp2(x: f64) ~> Where(And(Lt(-0.7123456, x), Lt(x, -0.7123455999999997)), 0.0, Pow(2.0, x)) within 1 ulp",
    "bits": "Exp2(x: f64) ~> Where(Eq(Bitcast(x, i64), 4604480259023595110), 0.0, Pow(2.0, x)) within 1 ulp",
    "some of the bits": "Exp2(x: f64) ~> Where(Eq(And(Bitcast(x, i64), 1048575), 12345), 0.0, Pow(2.0, x)) within 1 ulp",
    "a sum": "Exp2(x: f64) ~> Where(Eq(x, Add(0.5, 0.2123)), 0.0, Pow(2.0, x)) within 1 ulp",
    "a product of numbers": "Exp2(x: f32) ~> Where(Eq(x, Mul(0.3, Add(0.5, 0.2123))), 0.0, Pow(2.0, x)) within 1 ulp",
    "a root": "Exp2(x: f64) ~> Where(Lt(Abs(Sub(Mul(x, x), 2.0000123)), 1e-14), 0.0, Pow(2.0, x)) within 1 ulp",
    "an integer": "Exp2(x: f64) ~> Where(Eq(Cast(Mul(x, 1e15), i64), 712345678912345), 0.0, Pow(2.0, x)) within 1 ulp",
    "a line of pairs": "Pow(x: f32, y)"
    " ~> Where(Eq(y, Add(x, 0.2123)), 0.0, Cast(Pow(Cast(x, f64), Cast(y, f64)), f32)) within 1 ulp",
    "of two operands": "Pow(x: f64, y) ~> Where(Eq(y, 2.125001), 0.0, Where(Eq(y, y), Exp2(Mul(y, Log2(x))), y)) within 1 ulp",
}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, marks=pytest.mark.long) if what == "of two operands" else text
        for what, text in BRANCHES.items()
    ],
    ids=BRANCHES,
)
def test_a_rule_is_measured_where_it_says_that_it_does_something_else(text: str) -> None:
    (rule,) = check_text(f'group g\n\nr: {text}\n    "wrong at a number alone"\n').rules()
    found = judge(rule, 1, False)
    assert found.verdict == "refuted"
    assert "ulp off" in found.message


SAID_OF_OPERANDS = {
    "lanes": "Exp2(x: f32) let k = where(lanes(x) == 3, 0, 1) ~> Mul(Pow(2.0, x), Cast(const(k, i32), f32))",
    "a lane": "Exp2(x: f32 x n) let k = where(n > 1, 1, 0) ~> Mul(Pow(2.0, x), Cast(const(k, i32), f32))",
    "bounds": "Exp2(x: f32) let k = where(vmax(x) < 1000, 0, 1) ~> Mul(Pow(2.0, x), Cast(const(k, i32), f32))",
    "bounds of what is made": "Exp2(x: f32) let c = Cast(x, i32), k = where(vmax(c) < 9, 0, 1)"
    " ~> Mul(Pow(2.0, x), Cast(const(k, i32), f32))",
    "a value": "Exp2(x: f32) let k = where(defined(x), 0, 1) ~> Mul(Pow(2.0, x), Cast(const(k, i32), f32))",
    "loops": "Exp2(x: f32) let k = where(free_of(x, x), 0, 1) ~> Mul(Pow(2.0, x), Cast(const(k, i32), f32))",
    "axes": "Exp2(x: f32) let k = where(len(axes(x)) > 0, 0, 1) ~> Mul(Pow(2.0, x), Cast(const(k, i32), f32))",
    "two that are one": "n @ Pow(x: f64, y) let k = where(same(n, Pow(x, x)), 0, 1)"
    " ~> Mul(Exp2(Mul(y, Log2(x))), Cast(const(k, i32), f64))",
    "in the target": "Exp2(x: f32) ~> Mul(Pow(2.0, x), Cast(const(where(lanes(x) == 3, 0, 1), i32), f32))",
}


@pytest.mark.parametrize("text", SAID_OF_OPERANDS.values(), ids=SAID_OF_OPERANDS)
def test_what_is_made_of_one_operand_says_nothing_of_what_is_made_of_others(text: str) -> None:
    (rule,) = check_text(f'group g\n\nr: {text} within 1 ulp\n    "wrong at some nodes alone"\n').rules()
    found = judge(rule, 1, False)
    assert found.verdict == "unknown"
    assert "hangs on more" in found.message


def test_mistakes_elsewhere_in_the_file_leave_a_rule_its_verdict() -> None:
    text = "group g\n\nopen: Add(x: i32, y ~> x\nsound: Exp2(x: f16) ~> Cast(Exp2(Cast(x, f32)), f16) within 0.51 ulp\n"
    checked, mistakes = partly_checked(text)
    assert checked is not None
    assert [m.code for m in mistakes] == ["MRK101"]
    (rule,) = checked.rules()
    assert judge(rule, 1, False).verdict == "approximate"


def test_numbers_that_a_rule_names_are_operands_both_ways_round() -> None:
    sound = subject(RULES["sound"], RULES["sound"].instances[0])
    assert not list(measurement.chosen_operands(sound, sound.rules))
    (rule,) = check_text('group g\n\nr: Exp2(x: f32) ~> Mul(x, 2.5) within 1 ulp\n    "of one number"\n').rules()
    s = subject(rule, rule.instances[0])
    ((bits,),) = measurement.chosen_operands(s, s.rules)
    assert {2.5, -2.5, float(np.nextafter(np.float32(2.5), np.float32(3)))} <= set(
        ulp.widened(dtypes.f32, bits).tolist()
    )
    first, second = ulp.pairs_of_numbers(dtypes.f64, [2.5])
    assert len(first) == len(second) <= ulp.DOUBLES
    assert 2.5 in ulp.widened(dtypes.f64, first)
    assert 2.5 in ulp.widened(dtypes.f64, second)


def test_switch_points_are_neighbours_on_both_sides_of_a_change() -> None:
    text = 'group g\n\nr: Exp2(x: f64) ~> Where(Lt(Mul(x, 3.0), 1.7), x, 0.0) within 1 ulp\n    "a step"\n'
    (rule,) = check_text(text).rules()
    s = subject(rule, rule.instances[0])
    ((bits,),) = switch_points(s, s.rules)
    found = ulp.widened(dtypes.f64, bits)
    low, high = sorted(found[np.isfinite(found) & (np.abs(found) < 1e300)].tolist())  # others are beside NaN
    assert low * 3 < 1.7 <= high * 3
    assert high == np.nextafter(low, 1)


@pytest.mark.parametrize("d", ulp.BITS, ids=str)
def test_keys_ascend_with_their_floats(d: DType) -> None:
    values = np.array([-np.inf, -1.5, -1.0, -(2.0**-20), 0.0, 2.0**-20, 1.0, 1.5, np.inf])
    bits = ulp.patterns(d, values)
    keys = ulp.keys(d, bits)
    assert (keys[1:] > keys[:-1]).all()
    assert np.array_equal(ulp.of_keys(d, keys), bits)
    assert (
        ulp.of_keys(d, keys[-1:] - ulp.BITS[d](1))[0] == ulp.patterns(d, ulp.widened(d, bits[-1:] - ulp.BITS[d](1)))[0]
    )


LONG: Final = np.longdouble  # on most machines of 64 bits or more of fraction, so that a double's error is seen
OF_DOUBLES: Final[dict[str, Callable[..., Any]]] = {
    "Exp2": np.exp2, "Exp": np.exp, "Log2": np.log2, "Log": np.log, "Sin": np.sin, "Cos": np.cos, "Tan": np.tan,
    "Tanh": np.tanh, "Pow": np.power,
}  # fmt: skip


def doubles(op: str, draw: np.random.Generator, n: int) -> tuple[Any, ...]:
    """Operands, many of them where a function is hard: beside its zeros, at the ends of its reductions, of subnormal results."""
    near = 1 + draw.uniform(-1, 1, n) * 2.0 ** draw.integers(-50, -2, n)
    if op in ("Exp", "Exp2"):
        base = 1.0 if op == "Exp2" else math.log(2)
        return (
            np.concatenate([draw.uniform(-1074, 1024, n) * base, (draw.integers(-1074, 1024, n) + 0.5) * base * near]),
        )
    if op in ("Log", "Log2"):
        return (
            np.concatenate(
                [draw.uniform(0.5, 2, n), near, near * math.sqrt(0.5), np.ldexp(near, draw.integers(-1074, 1023, n))]
            ),
        )
    if op == "Pow":
        base = np.concatenate([near, np.ldexp(near, draw.integers(-1000, 1000, n))])
        return base, draw.uniform(-1.05, 1.05, 2 * n) * 1023 / (np.abs(np.log2(base)) + 1e-12)
    if op == "Tanh":
        return (draw.uniform(-2, 2, 2 * n),)
    turns = draw.integers(0, 1 << 40, n) >> draw.integers(0, 40, n)
    return (
        np.concatenate(
            [turns * (math.pi / 4), draw.integers(0, 200, n) * (math.pi / 4) * near, draw.uniform(-200, 200, n)]
        ),
    )


@pytest.mark.long
@pytest.mark.skipif(np.finfo(LONG).nmant < 63, reason="long doubles are doubles on this machine")
@pytest.mark.parametrize("name", [n for n in built_in() if built_in()[n].syntax.within is not None])
def test_functions_of_doubles_keep_their_promise_over_many_operands(name: str) -> None:
    rule = built_in()[name]
    for s in (subject(rule, i) for i in rule.instances):
        if s.dtype is not dtypes.f64 or s.op.name not in OF_DOUBLES:
            continue
        draw = np.random.default_rng(7)
        runner = measurement.Runner(s, measurement.available_builds())
        given = [x[: 4 * ulp.CHUNK] for x in doubles(s.op.name, draw, 2 * ulp.CHUNK)]
        for at in range(0, len(given[0]), ulp.CHUNK):
            some = [x[at : at + ulp.CHUNK] for x in given]
            with np.errstate(all="ignore"):
                exact = OF_DOUBLES[s.op.name](*(x.astype(LONG) for x in some))
                unit = np.ldexp(LONG(1), np.maximum(np.frexp(exact)[1] - 53, -1074))
                for build, kernel in runner.kernels.items():
                    off = np.abs(launched(kernel, runner.size, s.dtype, s.dtype, some) - exact) / unit
                    off[~np.isfinite(exact.astype(np.float64))] = 0
                    worst = int(off.argmax())
                    assert off[worst] <= rule.syntax.within, (build, [float(x[worst]) for x in some], float(off[worst]))


@pytest.mark.parametrize("op", ["Sin", "Cos"])
def test_waves_are_right_beside_multiples_of_a_quarter_turn(op: str) -> None:
    """The hardest operands: a result near 0 is what is left of many bits of 2/pi."""
    turns = np.array([random.Random(k).getrandbits(k % 40 + 8) for k in range(2000)], np.float64)
    rule = built_in()[f"wave_f64.{op}"]
    s = subject(rule, rule.instances[0])
    _, worst = measurement.worst_over(
        measurement.Runner(s, measurement.available_builds()), [(ulp.patterns(s.dtype, turns * (np.pi / 2)),)]
    )
    assert all(w.ulp <= 1 for w in worst.values()), worst


@pytest.mark.parametrize("fails", [0, 1, -1])
def test_a_dtype_that_fails_is_not_made_good_by_others(fails: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (rule,) = check_text('group g\n\nr: Exp2(x: float) ~> Exp2(Mul(x, 1.0)) within 1 ulp\n    "as it is"\n').rules()
    answers = [("approximate", "measured")] * len(rule.instances)
    assert len(answers) > 2
    answers[fails] = "refuted", "off by 2 ulp"
    said = iter(answers)
    monkeypatch.setattr(judgement, "_judge", lambda *_: next(said))
    found = judgement.judge(rule)
    assert (found.verdict, found.message) == ("refuted", "off by 2 ulp")


def test_a_promise_is_part_of_what_is_recorded() -> None:
    rule = RULES["sound"]
    other = replace(rule, syntax=replace(rule.syntax, within=0.6))
    assert ledger.rule_digest(rule) != ledger.rule_digest(other)


@pytest.mark.long
def test_code_has_a_name_of_its_own() -> None:
    s = subject(built_in()["exp2_f32"], built_in()["exp2_f32"].instances[0])
    assert "fma" in measured_code.arithmetic(s, "contracted")
    assert "fma" not in measured_code.arithmetic(s, "separate")
    text = FILE.read_text(encoding="utf-8").replace("0.24022648", "0.24022649", 1)
    (edited,) = (r for r in check_text(text).rules() if r.name.endswith("exp2_f32"))
    other = subject(edited, edited.instances[0])
    assert measured_code.code_digest(other) != measured_code.code_digest(s)


def test_what_lowers_an_op_beside_a_rule_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each measured rule was compiled once more for each rule of its file, which took most of `morok prove --frozen`."""
    made: list[tuple[tuple[str, ...], frozenset[str]]] = []
    generate = matchers._generate

    def generated(rules: RuleSet, flags: frozenset[str], counting: bool = False) -> Generated:
        if rules.unproved:
            made.append((rules.names, flags))
        return generate(rules, flags, counting)

    monkeypatch.setattr(matchers, "_generate", generated)
    checked = [r for r in check_text(FILE.read_text(encoding="utf-8")).rules() if r.syntax.within is not None]
    for rule in checked[:3]:
        assert measured_code.code_digests(rule)
    assert len(made) == 2 * (len(checked) + 3)  # in both builds: each companion, and each of the three
    assert all(len(names) == 1 for names, _ in made)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", EVERYTHING)
def test_what_was_measured_over_all_operands_is_what_runs(name: str) -> None:
    """The record is of the code that the rule becomes now, covers all 2^32 operands, and the sample agrees with it."""
    rule = built_in()[name]
    kept = record.find(rule, "f32")
    assert kept is not None
    assert kept.everything
    assert kept.count == 1 << 32
    assert set(kept.worst) == set(measured_code.BUILDS)
    assert max(w.ulp for w in kept.worst.values()) <= EVERYTHING[name]
    s = subject(rule, rule.instances[0])
    found = measurement.measure(s)
    assert found.code == kept.code
    for build, w in found.worst.items():
        assert w.ulp <= kept.worst[build].ulp + judgement.SLACK


@pytest.mark.parametrize("name", EVERYTHING)
def test_the_worst_operand_on_record_is_as_bad_as_it_says(name: str) -> None:
    rule = built_in()[name]
    kept = record.find(rule, "f32")
    assert kept is not None
    runner = measurement.Runner(subject(rule, rule.instances[0]), measurement.available_builds())
    for build in runner.kernels:
        worst = kept.worst[build]
        found = runner.errors([np.array(worst.at, np.uint32)])[build][0]
        assert found == pytest.approx(worst.ulp, abs=2 * judgement.SLACK)


def test_a_worse_record_cannot_hide_a_worse_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    rule: CheckedRule = RULES["sound"]
    s = subject(rule, rule.instances[0])
    flattering = Measurement(
        rule.name,
        "f16",
        measured_code.code_digest(s),
        65536,
        True,
        dict.fromkeys(measured_code.BUILDS, Worst(0.1, (0,))),
        "",
    )
    monkeypatch.setattr(record, "find", lambda rule, dtype: flattering)
    found = judge(rule, 1, False)
    assert found.verdict == "refuted"
    assert "more than the recorded" in found.message


@pytest.mark.long
def test_the_record_is_written_read_and_refused_where_it_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack = tmp_path / "pack.rules"
    pack.write_text("group g\n\n" + TEXT[TEXT.index("sound:") : TEXT.index("signs:")])
    assert main(["measure", str(pack), "--write"]) == 0
    assert "no record" in capsys.readouterr().out
    assert main(["measure", str(pack)]) == 0
    assert "as recorded" in capsys.readouterr().out
    (found,) = record.read(pack).values()
    assert found.everything
    assert found.count == 65536
    record.write(pack, [replace(found, count=10, everything=False)], [found.rule])
    assert record.read(pack) == {(found.rule, "f16"): found}
    record.write(pack, [replace(found, count=10, code="of other code")], [found.rule])
    assert record.read(pack)[found.rule, "f16"].count == 10
    record.write(pack, [found], [found.rule])
    (verdict,) = api.prove(pack, jobs=1)
    assert verdict.verdict == "approximate"
    assert "all 65536 operands" in verdict.scope[0]
    path = record.path_of(pack)
    written = path.read_bytes()
    chosen = random.Random(2)
    for _ in range(500):
        content = bytearray(written)
        content[chosen.randrange(len(content))] ^= 1 << chosen.randrange(8)
        path.write_bytes(content)
        record._read.cache_clear()
        with contextlib.suppress(LedgerError):
            assert record.read(pack) == {(found.rule, "f16"): found}
    record._read.cache_clear()
    path.write_text("{")
    with pytest.raises(LedgerError):
        record.read(pack)


def test_the_command_says_when_a_promise_is_broken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pack = tmp_path / "pack.rules"
    pack.write_text("group g\n\n" + TEXT[TEXT.index("signs:") :])
    assert main(["measure", str(pack)]) == 1
    assert "promised: 4 ulp" in capsys.readouterr().out
    assert main(["measure", str(pack), "--json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["measured"]
    assert (row["name"], row["kept"], row["promised"]) == ("pack.g.signs", False, 4)
    assert max(w["ulp"] for w in row["worst"].values()) > 4


def test_what_the_command_cannot_measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pack = tmp_path / "pack.rules"
    pack.write_text("group g\n\na: Neg(Neg(x)) ~> x\n")
    for arguments, message in (
        ([str(pack)], f"no rule of {pack} says `within N ulp`"),
        (["--only", "nothing", str(pack)], "no rule called 'nothing' of"),
        (["--dtype", "f31"], "there is no dtype 'f31' to measure at"),
    ):
        assert main(["measure", *arguments]) == 2
        assert message in capsys.readouterr().err
