"""Each thing that a dialect can get wrong is an error that names op and field, and spoils the rules that use it and no others."""

from __future__ import annotations

import itertools
import os
import sys
import time
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mistaken
import pytest
from mistaken import HIGH, LOW, Saturating, clip, dialect, op, with_op

from morok.dialect import NOT_CONST, OperandInfo, verify
from morok.dsl.check import check_text
from morok.dsl.checked import CheckedRule
from morok.errors import DialectError, MorokError, RuleError
from morok.ir.morok_dialect import MOROK
from morok.prove import dialect_facts, dialect_trials
from morok.prove.api import prove
from morok.prove.encoding.facts import MEANT
from morok.rewrite.engine import graph_rewrite
from morok.rewrite.library import load_rules, rewrite
from morok.rewrite.ruleset import RuleSet

X = ("var", "sat", "x")
ZERO = ("const", "sat", 0)
RULES = {
    "add": ("Add[x, @zero] ~> x", ("add", X, ZERO), X),
    "sub": ("Sub(x, x) ~> zero(x)", ("sub", X, X), ZERO),
    "max": ("Max(x, x) ~> x", ("max", X, X), X),
    "neg": ("Neg(Neg(x)) ~> x", ("neg", ("neg", X)), X),
    "bound": ("Max(x, @const(c)) if vmin(x) >= c ~> x", ("max", X, ("const", "sat", LOW)), X),
    "fold": ('Sub(@const(a), @const(b)) let v = eval(Sub, a, b) ~> v\n    "constants"', ("sub", ZERO, ZERO), ZERO),
    "quotient": ("Idiv(@zero, x) ~> zero(x)", ("idiv", ZERO, X), ZERO),
}
TEXTS = {name: text for name, (text, _, _) in RULES.items()}
ALL = frozenset(RULES)
CONSTANTS = ALL - {"max", "neg"}


@dataclass(frozen=True)
class Kind:
    """A mistake: how it is made, what names it, and which rules it spoils. `fires`: rules still fire beside it."""

    make: Callable[[], Saturating]
    op: str
    field: str
    spoiled: frozenset[str]
    fires: bool = True


def changed(name: str, **changes: Any) -> Callable[[], Saturating]:
    return lambda: with_op(dialect(), name, **changes)


def having(**state: Any) -> Callable[[], Saturating]:
    def make() -> Saturating:
        made = dialect()
        for name, value in state.items():
            setattr(made, name, value)
        return made

    return make


def method(**methods: Callable[..., Any]) -> Callable[[], Saturating]:
    return lambda: dialect(**methods)


def clashing() -> Saturating:
    made = with_op(dialect(), "Max", key="add")
    return made


def another(name: str, **changes: Any) -> Callable[[], Saturating]:
    """With one op more."""

    def make() -> Saturating:
        made = dialect()
        made.ops = {**made.ops, name: op("Max", 2, lambda d, a, b: max(a, b), **changes)}
        return made

    return make


def of_truths(evaluate: Callable[..., Any]) -> Callable[[], Saturating]:
    """With an op of two truths."""

    def make() -> Saturating:
        made = dialect()
        made.ops = {**made.ops, "Xor": op("Xor", 2, evaluate, params=("bool", "bool"), domains={}, result="bool")}
        return made

    return make


_calls = itertools.count()


def counting(d: Any, a: int, b: int) -> int:
    return clip(a - b) + next(_calls) % 2


def only(*names: str) -> frozenset[str]:
    return frozenset(names)


def depth(n: Any) -> int:
    return 1 + max(map(depth, n[1:])) if n[0] in mistaken.KEYS else 0


TABLE = [-v for v in range(LOW, HIGH + 1)]
TABLE[57] += 1
TRUTHS = [[False, True], [True, True]]
BOUNDS: dict[str, Callable[..., Any]] = {"vmin": lambda n: LOW, "vmax": lambda n: HIGH}
MAXES = only("max", "bound")
SUBS = only("sub", "fold")
KINDS = {
    "theory module missing": Kind(having(theory="nowhere.at.all:Theory"), "", "theory", ALL),
    "theory class missing": Kind(having(theory="mistaken:Theories"), "", "theory", ALL),
    "no theory": Kind(having(theory=""), "", "theory", ALL),
    "theory that is no path": Kind(having(theory="mistaken.Theory"), "", "theory", ALL),
    "theory that is no theory": Kind(having(theory="mistaken:clip"), "", "theory", ALL),
    "theory of fewer values than ops make": Kind(having(theory="mistaken:Narrow"), "", "theory", ALL),
    "theory without what const makes": Kind(having(theory="mistaken:Zero"), "", "theory", ALL),
    "theory that takes values for equal": Kind(having(theory="mistaken:AllEqual"), "", "theory", ALL),
    "theory that counts from another number": Kind(having(theory="mistaken:OffByOne"), "", "theory", ALL),
    "theory whose bounds are turned round": Kind(having(theory="mistaken:Turned"), "", "theory", ALL),
    "theory with other values for several ops": Kind(having(theory="mistaken:TwoFaced"), "", "theory", ALL),
    "solver that sees no unknowns": Kind(changed("Lt", solver="mistaken:seen_less"), "Lt", "evaluate", frozenset()),
    "solver that takes two unknowns for one": Kind(
        changed("Sub", solver="mistaken:seen_equal"), "Sub", "evaluate", SUBS
    ),
    "fields of an op with params": Kind(
        changed("Max", fields=("how",), field_kinds={"how": "int?"}), "Max", "fields", MAXES
    ),
    "solver missing": Kind(changed("Max", solver="mistaken:solve_maximum"), "Max", "solver", MAXES),
    "solver's module missing": Kind(changed("Max", solver="mistaken_not:solve_max"), "Max", "solver", MAXES),
    "solver empty": Kind(changed("Max", solver=""), "Max", "solver", MAXES),
    "solver that is no path": Kind(changed("Max", solver="mistaken.solve_max"), "Max", "solver", MAXES),
    "solver that returns no term": Kind(changed("Max", solver="mistaken:no_term"), "Max", "solver", MAXES),
    "solver that raises": Kind(changed("Max", solver="mistaken:raising"), "Max", "solver", MAXES),
    "solver of another arity": Kind(changed("Max", solver="mistaken:too_few"), "Max", "solver", MAXES),
    "solver of another sort": Kind(changed("Max", solver="mistaken:of_no_sort"), "Max", "solver", MAXES),
    "unknown domain": Kind(changed("Max", domains={"T": ("sat", "sat16")}), "Max", "domains", MAXES),
    "empty domain": Kind(changed("Max", domains={"T": ()}), "Max", "domains", MAXES),
    "letter that is a dtype": Kind(changed("Max", domains={"T": ("sat",), "sat": ("sat",)}), "Max", "domains", MAXES),
    "letter without domain": Kind(changed("Max", params=("T", "S")), "Max", "params", MAXES),
    "result without domain": Kind(changed("Max", result="R"), "Max", "result", MAXES),
    "no result": Kind(changed("Max", result=""), "Max", "result", MAXES),
    "domain of a dtype that the theory lacks": Kind(
        lambda: with_op(
            having(dtypes={"sat": "sat", "bool": "bool", "wide": "wide"})(), "Max", domains={"T": ("sat", "wide")}
        ),
        "Max",
        "domains",
        MAXES,
    ),
    "params too short": Kind(changed("Max", params=("T",)), "Max", "params", MAXES),
    "params too long": Kind(changed("Neg", params=("T", "T")), "Neg", "params", only("neg")),
    "params of any number of operands": Kind(
        changed("Max", operands=(OperandInfo("x", many=True),), params=("T",), kind="", commutative=False),
        "Max",
        "params",
        MAXES,
    ),
    "kind of another arity": Kind(changed("Neg", kind="binary"), "Neg", "kind", only("neg")),
    "const_value None": Kind(
        method(const_value=lambda self, n: n[2] if n[0] == "const" else None), "", "const_value", ALL
    ),
    "const_value None for constants": Kind(method(const_value=lambda self, n: None), "", "const_value", CONSTANTS),
    "const_value of another": Kind(
        method(const_value=lambda self, n: n[2] + 1 if n[0] == "const" and n[1] == "sat" else NOT_CONST),
        "",
        "const",
        CONSTANTS,
    ),
    "const_value of another class": Kind(
        method(const_value=lambda self, n: float(n[2]) if n[0] == "const" else NOT_CONST), "", "const", CONSTANTS
    ),
    "evaluator of another class": Kind(
        changed("Sub", evaluate=lambda d, a, b: float(clip(a - b))), "Sub", "evaluate", SUBS
    ),
    "const that raises": Kind(method(const=lambda self, d, v: {}[v]), "", "const", CONSTANTS),
    "const of narrower values": Kind(
        method(const=lambda self, d, v: ("const", d, max(-50, v))), "", "const", CONSTANTS
    ),
    "type of constants": Kind(method(type=lambda self, n: "other" if n[0] == "const" else "sat"), "", "type", ALL),
    "undeclared fact": Kind(having(facts={}), "", "facts['vmin']", only("bound")),
    "unknown fact": Kind(having(facts={"vmim": lambda n: LOW}), "", "facts['vmin']", only("bound")),
    "fact that is no function": Kind(having(facts={"vmin": 3}), "", "facts", only("bound")),
    "fact that does not hold": Kind(having(facts={"vmin": lambda n: 0}), "", "facts['vmin']", only("bound")),
    "fact of another class": Kind(
        having(facts={**BOUNDS, "vmin": lambda n: float(LOW)}), "", "facts['vmin']", only("bound")
    ),
    "fact that raises": Kind(having(facts={"vmin": lambda n: n.low}), "", "facts['vmin']", only("bound")),
    "overflow that is denied": Kind(
        having(facts={**BOUNDS, "no_overflow": lambda n: True}), "", "facts['no_overflow']", frozenset()
    ),
    "overflow that is denied of what is nested": Kind(
        having(facts={**BOUNDS, "no_overflow": lambda n: depth(n) > 1}), "", "facts['no_overflow']", frozenset()
    ),
    "overflow that is denied of parts": Kind(
        having(facts={**BOUNDS, "no_overflow": lambda n: False, "no_overflow_of": lambda key, parts: True}),
        "",
        "facts['no_overflow']",
        frozenset(),
    ),
    "value that is not there": Kind(
        having(facts={**BOUNDS, "defined": lambda n: True}), "", "facts['defined']", frozenset()
    ),
    "bound of constants": Kind(
        having(facts={**BOUNDS, "vmax": lambda n: 0 if n[0] == "const" else HIGH}), "", "facts['vmax']", frozenset()
    ),
    "template of a fact that has no function": Kind(
        having(facts={}, inline={"vmin": "0"}), "", "facts['vmin']", only("bound")
    ),
    "template of lanes": Kind(having(inline={"lanes": "2"}), "", "inline['lanes']", ALL),
    "template typo": Kind(having(inline={"opkye": "{n}[0]"}), "", "inline['opkye']", ALL),
    "template of another hole": Kind(having(inline={"opkey": "{m}[0]"}), "", "inline['opkey']", ALL),
    "template syntax": Kind(having(inline={"opkey": "{n}[0"}), "", "inline['opkey']", ALL),
    "template that mentions nobody": Kind(having(inline={"opkey": "first({n})"}), "", "inline['opkey']", ALL),
    "template of another op": Kind(having(inline={"build.Foo": "{a}"}), "", "inline['build.Foo']", ALL),
    "template that is not the method": Kind(having(inline={"operands": "{n}[2:]"}), "", "inline['operands']", ALL),
    "template of a fact that is not it": Kind(having(inline={"vmin": "5"}), "", "inline['vmin']", ALL),
    "template of constants": Kind(having(inline={"const_value": "{n}[2] * 2"}), "", "inline['const_value']", ALL),
    "template of types": Kind(having(inline={"scalar": "'sat'"}), "", "inline['scalar']", ALL),
    "template of equality": Kind(having(inline={"same": "{a}[0] == {b}[0]"}), "", "inline['same']", ALL),
    "hash consing that is none": Kind(having(hash_consed=True), "", "hash_consed", ALL),
    "evaluator's arity": Kind(changed("Sub", evaluate=lambda d, a: a), "Sub", "evaluate", SUBS),
    "evaluator that raises": Kind(changed("Sub", evaluate=lambda d, a, b: a.bits), "Sub", "evaluate", SUBS),
    "evaluator of nothing": Kind(changed("Sub", evaluate=lambda d, a, b: None), "Sub", "evaluate", SUBS),
    "evaluator off by one": Kind(changed("Sub", evaluate=lambda d, a, b: clip(a - b + 1)), "Sub", "evaluate", SUBS),
    "evaluator that wraps": Kind(
        changed("Sub", evaluate=lambda d, a, b: (a - b + 100) % 201 - 100), "Sub", "evaluate", SUBS
    ),
    "evaluator wrong at one number": Kind(
        changed("Sub", evaluate=lambda d, a, b: clip(a - b) if a != 57 else 3), "Sub", "evaluate", SUBS
    ),
    "evaluator without a value": Kind(
        changed("Max", evaluate=lambda d, a, b: max(a, b) if b else a // b), "Max", "evaluate", MAXES
    ),
    "evaluator of what has none": Kind(
        changed("Idiv", evaluate=lambda d, a, b: clip(a // b) if b else 0), "Idiv", "evaluate", only("quotient")
    ),
    "evaluator against solver": Kind(changed("Max", solver="mistaken:one_more"), "Max", "evaluate", MAXES),
    "evaluator that remembers": Kind(changed("Sub", evaluate=counting), "Sub", "evaluate", SUBS),
    "evaluator that ends the process": Kind(
        changed("Sub", evaluate=lambda d, a, b: os._exit(3)), "Sub", "evaluate", SUBS
    ),
    "evaluator that exits": Kind(changed("Sub", evaluate=lambda d, a, b: sys.exit(0)), "Sub", "evaluate", SUBS),
    "evaluator that reads a table with one wrong entry": Kind(
        changed("Neg", evaluate=lambda d, a: TABLE[a + 100]), "Neg", "evaluate", only("neg")
    ),
    "evaluator of truths that is wrong at one pair": Kind(
        of_truths(lambda d, a, b: TRUTHS[a][b]), "Xor", "evaluate", frozenset()
    ),
    "false commutativity": Kind(changed("Sub", commutative=True), "Sub", "commutative", SUBS),
    "commutativity of one operand": Kind(changed("Neg", commutative=True), "Neg", "commutative", only("neg")),
    "fresh operand lists": Kind(
        method(
            operands=lambda self, n: (
                [(*o,) if o[0] != "const" else (*list(o),) for o in n[1:]] if n[0] in mistaken.KEYS else ()
            )
        ),
        "",
        "operands",
        ALL,
    ),
    "operands of another": Kind(
        method(operands=lambda self, n: n[1:2] * 2 if n[0] == "sub" else n[1:] if n[0] in mistaken.KEYS else ()),
        "Sub",
        "operands",
        SUBS,
    ),
    "rebuild of nothing": Kind(method(rebuild=lambda self, n, o: None), "", "rebuild", ALL),
    "rebuild that changes nothing": Kind(method(rebuild=lambda self, n, o: n), "", "rebuild", ALL),
    "rebuild of another op": Kind(method(rebuild=lambda self, n, o: ("max", *o)), "", "rebuild", ALL - MAXES),
    "rebuild that is missing": Kind(method(rebuild=lambda self, n, o: self.nothing(n)), "", "rebuild", ALL),
    "build of another op": Kind(method(build=lambda self, op, o, a, d: ("max", *o)), "", "build", ALL - MAXES),
    "build in another order": Kind(
        method(build=lambda self, op, o, a, d: (op.lower(), *o[::-1])), "", "operands", SUBS | {"quotient"}
    ),
    "build of another value": Kind(
        method(build=lambda self, op, o, a, d: ("const", "sat", 0) if op == "Sub" else (op.lower(), *o)),
        "Sub",
        "build",
        SUBS,
    ),
    "type of nodes": Kind(method(type=lambda self, n: n[1] if n[0] in ("const", "var") else "bool"), "", "type", ALL),
    "const_value of what is nested": Kind(
        method(const_value=lambda self, n: n[2] if n[0] == "const" else 0 if depth(n) > 1 else NOT_CONST),
        "",
        "const_value",
        ALL,
    ),
    "fact that does not hold of what is nested": Kind(
        having(facts={"vmin": lambda n: LOW if depth(n) < 2 else 50, "vmax": lambda n: HIGH}),
        "",
        "facts['vmin']",
        only("bound"),
    ),
    "the same if nested": Kind(
        method(same=lambda self, a, b: a == b or (depth(a) > 1 and depth(b) > 1)), "", "same", ALL
    ),
    "the same in another order": Kind(
        method(same=lambda self, a, b: a == b or (a[0] == b[0] == "sub" and set(a[1:]) == set(b[1:]))), "", "same", ALL
    ),
    "key of another op for equal operands": Kind(
        method(opkey=lambda self, n: "sub" if n[0] == "add" and n[1] == n[2] else n[0]), "", "opkey", ALL
    ),
    "key of another op for what is nested": Kind(
        method(opkey=lambda self, n: "sub" if n[0] == "add" and depth(n) > 1 else n[0]), "", "opkey", ALL
    ),
    "operands of another for what is nested": Kind(
        method(
            operands=lambda self, n: (
                (n[1], n[1]) if n[0] == "sub" and depth(n) > 1 else n[1:] if n[0] in mistaken.KEYS else ()
            )
        ),
        "",
        "operands",
        ALL,
    ),
    "build of another value over what is nested": Kind(
        method(
            build=lambda self, op, o, a, d: (
                ("const", "sat", 0) if op == "Sub" and o[0][0] == "add" else (op.lower(), *o)
            )
        ),
        "Sub",
        "build",
        SUBS,
    ),
    "rebuild of what is nested": Kind(
        method(rebuild=lambda self, n, o: (n[0], o[0], o[0]) if n[0] == "sub" and depth(o[0]) == 1 else (n[0], *o)),
        "Sub",
        "rebuild",
        SUBS,
    ),
    "all the same": Kind(method(same=lambda self, a, b: True), "", "same", ALL),
    "the same by op": Kind(
        method(same=lambda self, a, b: (a[0] == b[0] and a[0] != "const") or a == b), "", "same", ALL
    ),
    "key clash": Kind(clashing, "Max", "key", MAXES | {"add"}),
    "another name": Kind(another("Greatest", key="greatest"), "Greatest", "name", frozenset()),
    "dtype that no rule could name": Kind(
        lambda: with_op(
            having(dtypes={"sat": "sat", "bool": "bool", "a b": "a b"})(), "Max", domains={"T": ("sat", "a b")}
        ),
        "Max",
        "domains",  # and, of the rule at both dtypes, the name
        MAXES,
    ),
    "names of generated code": Kind(having(names={"_tdiv": max}, inline={"opkey": "{n}[0]"}), "", "names", ALL),
    "equal dtypes": Kind(having(dtypes={"sat": "sat", "bool": "bool", "big": "sat"}), "", "dtypes", ALL),
    "unknown dtype in a class": Kind(
        having(classes={"any": frozenset({"sat", "i9"}), "int": frozenset({"sat"})}), "", "classes", ALL
    ),
}


def verdicts_of(made: Saturating, texts: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The verdict on each rule, each in a file of its own, and its message; "mistake" where it cannot even be checked."""
    found: dict[str, tuple[str, str]] = {}
    rules: list[CheckedRule] = []
    for name, text in texts.items():
        try:
            rules += check_text(f'dialect {made.name}\n\ngroup g "g"\n\n{name}: {text}\n').rules()
        except RuleError as refused:
            found[name] = (
                "mistake" if all(isinstance(e, DialectError) for e in refused.errors) else "error",
                str(refused),
            )
    for verdict in prove(rules, jobs=1, use_cache=False, contracts=False):
        found[verdict.name.rpartition(".")[2]] = verdict.verdict, verdict.message
    assert set(found) == set(texts)
    return found


def verdict_of(made: Saturating, name: str, text: str) -> tuple[str, str]:
    return verdicts_of(made, {name: text})[name]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_the_sound_dialect_has_no_mistakes(folder: Path) -> None:
    made = dialect()
    assert verify(made) == []
    for name, (verdict, message) in verdicts_of(made, TEXTS).items():
        assert verdict in ("proved", "defined"), (name, message)


@pytest.mark.sampled(138)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_a_mistake_names_op_and_field_and_spoils_what_uses_it(folder: Path, kind: Kind) -> None:
    made = kind.make()
    found = verify(made)
    undeclared = kind.field == "facts['vmin']" and "vmin" not in made.facts  # no mistake but where a rule asks for it
    assert found or undeclared
    assert all(isinstance(e, DialectError) and e.code == "MRK210" for e in found)
    assert any(e.field == kind.field and (not kind.op or e.op == kind.op) for e in found) or undeclared, found
    for e in found:
        assert (f"op {e.op} of" in str(e)) == bool(e.op)
        assert e.field in str(e)
    sound = []
    for name, (verdict, message) in verdicts_of(made, TEXTS).items():
        if name in kind.spoiled:
            assert verdict in ("broken", "mistake"), (name, verdict, message)
            assert "MRK210" in message
            assert kind.field in message
            assert kind.op in message
        else:
            assert verdict in ("proved", "defined"), (name, verdict, message)
            sound.append(name)
    if sound:
        file = folder / "sound.rules"
        file.write_text(f'dialect {made.name}\n\ngroup g "g"\n\n' + "".join(f"{n}: {RULES[n][0]}\n" for n in sound))
        rules = load_rules(file)
        for name in sound:
            assert rewrite(RULES[name][1], rules) == RULES[name][2], name
    for name in kind.spoiled:
        file = folder / "spoiled.rules"
        file.write_text(f'dialect {made.name}\n\ngroup g "g"\n\n{name}: {RULES[name][0]}\n')
        with pytest.raises((DialectError, RuleError), match="MRK210"):
            load_rules(file)


@pytest.mark.long
def test_encodings_that_a_theory_has_for_no_op_alone(folder: Path) -> None:
    """Nobody has compared them with what runs: of two ops the theory knows 0 alone."""
    made = having(theory="mistaken:Paired")()
    assert verify(made) == []
    verdict, message = verdict_of(made, "r", "Sub(Max(x, y), x) ~> zero(x)")
    assert verdict == "broken"
    assert "`attempts`" in message
    assert verdict_of(made, "r", "Max(x, x) ~> x")[0] == "proved"


@pytest.mark.long
@pytest.mark.parametrize("held", mistaken.HELD)
def test_encodings_are_told_apart_by_what_they_hold(held: str, folder: Path) -> None:
    other, same = (having(theory=f"mistaken:{kind}_{held}")() for kind in ("Pairs", "Same"))
    assert verify(other) == verify(same) == []
    false, true = "Sub(Max(x, y), x) ~> zero(x)", "Sub(Max(x, y), x) ~> Sub(Max(y, x), x)"
    assert verdict_of(other, "r", false)[0] == "broken"
    assert verdict_of(other, "r", true)[0] == "broken"
    assert verdict_of(same, "r", false)[0] == "refuted"
    assert verdict_of(same, "r", true)[0] == "proved"


@pytest.mark.long
def test_a_file_of_rules_with_mistakes_and_without(folder: Path) -> None:
    """What `prove` says of the file: a verdict on each rule, and each rule that nothing spoils is proved."""
    made = with_op(
        with_op(dialect(), "Max", domains={"T": ("sat16",)}), "Sub", evaluate=lambda d, a, b: clip(a - b - 1)
    )
    file = folder / "mixed.rules"
    text = "".join(f"{n}: {t}\n" for n, (t, _, _) in RULES.items())
    file.write_text(f'dialect {made.name}\n\ngroup g "g"\n\n{text}')
    found = {v.name.rpartition(".")[2]: v for v in prove(file, jobs=1)}
    assert set(found) == set(RULES)
    assert {n for n, v in found.items() if v.verdict == "broken"} == MAXES | SUBS
    assert all(v.code == "MRK210" and "MRK210" in v.message for v in found.values() if v.verdict == "broken")
    assert {n for n, v in found.items() if v.usable} == ALL - MAXES - SUBS
    with pytest.raises((DialectError, RuleError), match="MRK210"):
        load_rules(file)


# Of each class of false rules that dialects let through: none fires.

SUM, NEGATED, TWICE = ("add", X, X), ("neg", X), ("add", ("add", X, X), ("add", X, X))
LIES: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "of equal operands": (lambda d, n: "sub" if n[0] == "add" and n[1] == n[2] else n[0], SUM),
    "of one object": (lambda d, n: "sub" if n[0] == "add" and n[1] is n[2] else n[0], SUM),
    "of the greater": (lambda d, n: "sub" if n[0] == "max" and n[1] == n[2] else n[0], ("max", X, X)),
    "of equal nested operands": (
        lambda d, n: "sub" if n[0] == "add" and n[1] == n[2] and depth(n) > 1 else n[0],
        ("add", NEGATED, NEGATED),
    ),
    "of equal operands of one op": (
        lambda d, n: "sub" if n[0] == "add" and n[1] == n[2] and n[1][0] == "add" else n[0],
        TWICE,
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(("opkey", "term"), LIES.values(), ids=LIES.keys())
def test_a_rule_of_an_op_does_not_fire_at_another_whose_key_lies(
    folder: Path, opkey: Callable[..., Any], term: Any
) -> None:
    """`Sub(x, x) ~> zero(x)` is true, and would make 0 of a node that says it is a difference and is none."""
    made = dialect(opkey=opkey)
    file = folder / "difference.rules"
    file.write_text(f'dialect {made.name}\n\ngroup g "g"\n\nr: Sub(x, x) ~> zero(x)\n')
    rules = list(check_text(file.read_text()).rules())
    assert graph_rewrite(term, RuleSet.of(rules, unproved=True)) == ZERO
    (verdict,) = prove(rules, jobs=1, use_cache=False)
    assert (verdict.verdict, verdict.usable) == ("broken", False)
    with pytest.raises((DialectError, RuleError), match="MRK210"):
        load_rules(file)


def unlisted(closed: bool) -> Saturating:
    """With an op that lists the bools alone."""
    made = dialect()
    made.ops = {
        **made.ops,
        "Xor": op(
            "Xor", 2, lambda d, a, b: a != b, domains={"T": ("bool",)}, commutative=True, solver="mistaken:solve_xor"
        ),
    }
    if closed:
        made.closed_types = True  # type: ignore[attr-defined]
    return made


@pytest.mark.long
def test_a_rule_of_the_bools_fires_at_nothing_else(folder: Path) -> None:
    made = dialect(
        type=lambda self, n: n[1] if n[0] in ("const", "var") else "bool" if n[0] == "lt" else self.type(n[1])
    )
    made.ops = unlisted(False).ops
    file = folder / "xor.rules"
    file.write_text(f'dialect {made.name}\n\ngroup g "g"\n\nself: Xor(x, x) ~> zero(x)\nsum: Sub(x, x) ~> zero(x)\n')
    mistaken.KEYS["xor"] = 2
    rules = load_rules(file)
    for name in ("bool", "sat", "i7", "i32"):
        x = ("var", name, "x")
        assert (rewrite(("xor", x, x), rules) != ("xor", x, x)) == (name == "bool")
        assert (rewrite(("sub", x, x), rules) != ("sub", x, x)) == (name == "sat")


@pytest.mark.long
def test_types_that_are_said_to_be_closed_and_are_not(folder: Path) -> None:
    mistaken.KEYS["xor"] = 2
    made = unlisted(True)
    made.__class__.type = lambda self, n: (
        n[1] if n[0] in ("const", "var") else "bool" if n[0] == "lt" else self.type(n[1])
    )  # type: ignore[method-assign,misc]
    assert ("Xor", "closed_types") in {(e.op, e.field) for e in verify(made)}
    assert verdict_of(made, "r", "Xor(x, x) ~> zero(x)")[0] == "broken"


@pytest.mark.long
def test_an_evaluator_that_does_not_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(d: Any, a: int, b: int) -> int:
        while True:
            pass

    monkeypatch.setattr(dialect_trials, "LONGEST", 3.0)
    found = verify(with_op(dialect(), "Sub", evaluate=endless))
    assert [(e.op, e.field) for e in found] == [("Sub", "evaluate")]


@pytest.mark.long
def test_a_process_that_is_kept_waiting_is_no_mistake(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine says nothing of a dialect: only what a trial computes is held against it."""

    def waiting(d: Any, a: int, b: int) -> int:
        if not (folder / "waited").exists():
            (folder / "waited").touch()
            time.sleep(4)
        return clip(a - b)

    monkeypatch.setattr(dialect_trials, "LONGEST", 3.0)
    assert verify(with_op(dialect(), "Sub", evaluate=waiting)) == []
    assert (folder / "waited").exists()


@pytest.mark.long
def test_what_takes_the_longest_is_named_where_a_whole_dialect_takes_too_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def waiting(d: Any, a: int, b: int) -> int:
        while True:
            time.sleep(0.1)

    monkeypatch.setattr(dialect_trials, "WHOLE", 12.0)
    made = dialect()
    made.ops = {"Sub": with_op(made, "Sub", evaluate=waiting).ops["Sub"], "Neg": made.ops["Neg"]}
    mistakes, final = dialect_trials.trials(made, frozenset())
    assert not final  # nothing is kept
    assert {(m.op, m.field) for m in mistakes} >= {("Sub", "evaluate"), ("Neg", "evaluate")}
    assert all("more than 12 s, of which" in m.message for m in mistakes)
    assert "of which Sub took" in mistakes[-1].message


def test_a_dialect_without_a_method_cannot_be_registered() -> None:
    class Short(Saturating):
        rebuild = None  # type: ignore[assignment]

    from morok.dialect import register

    for use in (register, verify):
        with pytest.raises(MorokError, match=r"rebuild\(\)"):
            use(Short())


@pytest.mark.long
def test_numbers_that_the_dialect_makes_others_of(folder: Path) -> None:
    """A rule that writes 200, of which this dialect makes 100: what matches is not what was proved."""
    made = dialect()
    for text in ("Add[x, 200] ~> const(100, sat)", "Sub(x, x) ~> Sub(x, x)"):
        verdict, message = verdict_of(made, "r", text)
        if "200" in text:
            assert verdict == "broken"
            assert "200" in message
            assert "100" in message
    assert HIGH == 100


@pytest.mark.long
def test_the_answer_is_kept_until_something_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = dialect()
    tried = []
    trials = dialect_trials.trials

    def counting(*args: Any) -> Any:
        tried.append(1)
        return trials(*args)

    monkeypatch.setattr(dialect_trials, "trials", counting)
    assert verify(made) == verify(made) == []
    assert len(tried) == 1
    with_op(made, "Sub", evaluate=lambda d, a, b: clip(a - b - 1))
    assert [e.field for e in verify(made)] == ["evaluate"]
    assert [e.field for e in verify(made)] == ["evaluate"]
    assert len(tried) == 2


@pytest.mark.long
def test_the_built_in_dialect_is_what_it_says() -> None:
    assert verify(MOROK) == []


@pytest.mark.parametrize("name", [t[3:] for t in MOROK.inline if t.startswith("in.") and t != "in.ptr"])
def test_a_template_of_a_class_says_what_is_in_it(name: str) -> None:
    """A rule about floats fires on those that its proof is about, whatever ops take: floats of 8 bits are in no class."""
    template = MOROK.inline[f"in.{name}"].format(n="n")
    said = {d for d, dtype in MOROK.dtypes.items() if eval(template, {"n": types.SimpleNamespace(dtype=dtype)})}
    assert said == MOROK.classes.get(name, frozenset((name,)))


def test_the_facts_that_proofs_learn_from_are_those_that_are_tried() -> None:
    assert {*MEANT, "lanes"} == dialect_facts.TRIED  # which the language itself asks


@pytest.mark.long
def test_a_fact_that_denies_overflow_spoils_what_asks_for_it(folder: Path) -> None:
    text = "Sub(Add(x: sat, y), y) if no_overflow(Add(x, y)) ~> x"
    for answer, wanted in ((True, "broken"), (False, "proved")):
        made = having(facts={**BOUNDS, "no_overflow": lambda n, answer=answer: answer})()
        verdict, message = verdict_of(made, "r", text)
        assert verdict == wanted, message
        assert ("no_overflow" in message) == answer


@pytest.mark.long
@pytest.mark.parametrize(
    "fact", ["rank(x) + 1 > 3", "constant(x) == 1", "free_of(x, y)", "whatever(x)", "rank(x) < 99", "same_shape(x, y)"]
)
def test_a_fact_that_nobody_tries_says_nothing(folder: Path, fact: str) -> None:
    """A fact without a trial says of a dialect's own nodes nothing that it says of Morok's."""
    names = ("rank", "constant", "free_of", "same_shape", "whatever")
    made = having(facts={**BOUNDS, **dict.fromkeys(names, lambda *n: 3)})()
    verdict, message = verdict_of(made, "r", f"Max(x: sat, y) if {fact} ~> x")
    assert verdict == "refuted", message
    verdict, message = verdict_of(made, "r", f"Max(x: sat, x) if {fact.replace('y', 'x')} ~> x")
    assert verdict == "proved", message


@pytest.mark.parametrize("flag", ["contract", "arcp"])
def test_assumptions_about_ops_of_the_built_in_dialect_are_of_no_other(flag: str) -> None:
    """There an op called Add may be anything."""
    with pytest.raises(RuleError, match="built-in dialect's ops alone"):
        check_text(f'dialect {dialect().name}\n\ngroup g "g"\n\nr: Neg(Neg(x)) ~> x assuming {flag}\n')
