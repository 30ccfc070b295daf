"""Everything that a dialect says of nodes and dtypes is tried: for each thing that it may say a lie here is found."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from two_sizes import BIG, SM, Term, dialect

from morok.dialect import NOT_CONST, Dialect, OpInfo, verify
from morok.dsl import declared
from morok.prove import dialect_trials
from morok.prove.encoding.facts import MEANT
from tests.prove.test_dialects_of_two_dtypes import VECTORS, lanes_of

INLINE: Mapping[str, str] = {
    "opkey": "{n}[0]",
    "operands": "_d.operands({n})",
    "type": "{n}[1]",
    "scalar": "{n}[1]",
    "same": "{a} == {b}",
    "vmin": "0",
    "vmax": "{n}[1][1]",
    "const_value": "_d.const_value({n})",
    "lanes": "len(_d.lanes_of({n}))",
    "const": "_d.const({d}, {v})",
    "const_op": "Const",
    "is_const": "{n}[0] == 'const'",
    "recall": "_d.recall({n})",
    "nests": "_d.nests({n})",
    "pointwise1": "_d.build({op}, ({a},), {{}}, None)",
    "pointwise2": "_d.build({op}, ({a}, {b}), {{}}, None)",
    "build.Flip": "_d.build('Flip', ({a},), {{}}, None)",
    "attr.indices": "{n}[3]",
    "in.sm": "{n}[1][1] == 100",
}
CONST = OpInfo("Const", "const", (), fields=("value",), types="result = result")
SOUND: Mapping[str, Any] = {
    **VECTORS,
    "ops": {**VECTORS["ops"], "Const": CONST},
    "inline": INLINE,
    "facts": {
        "vmin": lambda n: 0,
        "vmax": lambda n: n[1][1],
        "lanes": lambda n: len(lanes_of(None, n)),
        "defined": lambda n: True,
        "no_overflow": lambda n: False,
        "bits": lambda d: 7,
        "is_int": lambda d: True,
        "is_float": lambda d: False,
        "safe_cast": lambda a, b: a[1] <= b[1],
    },
    "element": lambda self, d: d,
    "recall": lambda self, n: self.__dict__.setdefault("notes", {}).setdefault(n, {}),
    "nests": lambda self, n: n[0] in ("Add", "Mul"),
}


def length(a: Term, b: Term) -> bool:
    """True of terms that are equal as far as both have parts: the shorter one decides."""
    if not (isinstance(a, tuple) and isinstance(b, tuple)):
        return bool(a == b)
    return a[:2] == b[:2] and all(length(x, y) for x, y in zip(a[2:], b[2:], strict=False))


def bare(n: Any) -> Any:
    """A term without the fields of what takes lanes."""
    return tuple(map(bare, n[:3] if n[0] == "Take" else n)) if isinstance(n, tuple) and n else n


def written(template: str, text: str) -> Mapping[str, Any]:
    return {"inline": {**INLINE, template: text}}


def answered(fact: str, answer: Any) -> Mapping[str, Any]:
    inline = {k: v for k, v in INLINE.items() if k != fact}
    return {"facts": {**SOUND["facts"], fact: answer}, "inline": inline}


WITHOUT: Mapping[str, Any] = {"inline": {}}  # templates: methods alone
# Lies, by what they are told of: the methods and attributes of a dialect, its templates, its facts.
LIES: Mapping[str, Mapping[str, Any]] = {
    "opkey": {"opkey": lambda self, n: "Join" if n[0] == "Take" else n[0], **WITHOUT},
    "operands": {"operands": lambda self, n: VECTORS["operands"](self, n)[:5], **WITHOUT},
    "attr": {"attr": lambda self, n, name: n[3][:5], **WITHOUT},
    "type": {"type": lambda self, n: SM if n[0] == "Join" else n[1], **WITHOUT},
    "same": {"same": lambda self, a, b: bare(a) == bare(b), **WITHOUT},
    "same of more operands": {"same": lambda self, a, b: length(a, b), **WITHOUT},
    "const_value": {"const_value": lambda self, n: 7 if n[0] in ("const", "Join") else NOT_CONST, **WITHOUT},
    "const": {"const": lambda self, d, v: ("const", d, v // 2), **WITHOUT},
    "build": {"build": lambda self, op, o, attrs, d: VECTORS["build"](self, op, o[::-1], attrs, d), **WITHOUT},
    "rebuild": {"rebuild": lambda self, n, o: (*n[:2], *o[:5], *(n[3:] if n[0] == "Take" else ())), **WITHOUT},
    "lanes_of": {"lanes_of": lambda self, n: lanes_of(self, n)[:37], **WITHOUT, "facts": {}},
    "element": {"element": lambda self, d: SM, **WITHOUT},
    "hash_consed": {"hash_consed": True},
    "closed_types": {"closed_types": True},
    "classes": written("in.sm", "True"),
    "dtypes": {"dtypes": {"sm": SM, "big": BIG, "large": BIG}},
    "recall": {"recall": lambda self, n: self.__dict__.setdefault("notes", {}).setdefault(n[0], {}), **WITHOUT},
    "ops": {"ops": {**VECTORS["ops"], "Take": VECTORS["ops"]["Join"]}},
    "theory": {"theory": "two_sizes:Generous"},
    "inline.opkey": written("opkey", "'Join' if {n}[0] == 'Take' else {n}[0]"),
    "inline.operands": written("operands", "_d.operands({n})[:5]"),
    "inline.type": written("type", "('u', 1000) if {n}[0] == 'Join' else {n}[1]"),
    "inline.scalar": written("scalar", "('u', 100)"),
    "inline.same": written("same", "{a}[:3] == {b}[:3]"),
    "inline.vmin": written("vmin", "1"),
    "inline.vmax": written("vmax", "99"),
    "inline.const_value": {"inline": {"const_value": "5 if {n}[0] == 'Join' else _d.const_value({n})"}},
    "inline.lanes": written("lanes", "min(len(_d.lanes_of({n})), 37)"),
    "inline.vector": written("vector", "('u', 100)"),
    "inline.const": written("const", "_d.const({d}, {v} + 1)"),
    "inline.const_op": written("const_op", "Join"),
    "inline.is_const": written("is_const", "True"),
    "inline.recall": written("recall", "{{}}"),
    "inline.nests": written("nests", "True"),
    "inline.pointwise1": written("pointwise1", "{a}"),
    "inline.pointwise2": written("pointwise2", "_d.build({op}, ({a}, {a}), {{}}, None)"),
    "inline.build.": written("build.Flip", "{a}"),
    "inline.attr.": written("attr.indices", "{n}[3][:5]"),
    "inline.in.": written("in.sm", "{n}[1][1] == 100 and {n}[0] != 'Join'"),
    "facts.vmin": answered("vmin", lambda n: 1),
    "facts.vmax": answered("vmax", lambda n: 99),
    "facts.lanes": answered("lanes", lambda n: min(3, len(lanes_of(None, n)))),
    "facts.lanes of some size": answered(
        "lanes", lambda n: 23 if len(lanes_of(None, n)) == 24 else len(lanes_of(None, n))
    ),
    "facts.lanes of pointwise ops": answered("lanes", lambda n: 1 if n[0] == "Add" else len(lanes_of(None, n))),
    "facts.no_overflow": answered("no_overflow", lambda n: True),
    "facts.is_int": answered("is_int", lambda d: False),
    "facts.safe_cast": answered("safe_cast", lambda a, b: True),
    "facts.is_float": answered("is_float", lambda d: True),
}
# What no rule can be wrong by, each for its reason.
OTHERS: Mapping[str, str] = {
    "name": "a name",
    "inline": "each template is tried",
    "facts": "each fact is tried",
    "members": "values that rules name",
    "names": "values that templates name",
    "node": "tells other objects by errors",
    "undefined": "what evaluators raise, which are tried",
    "read, show": "texts",
    "maker": "records",
    "origin": "records",
    "derive": "records",
    "keep": "records",
    "inline.pointwise3": "tried as those of one and two operands are; no op here has three",
    "inline.pointee": "no trial makes pointers, and no dtype of them is one of a foreign dialect",
    "inline.invalid": "see below",
    "inline.invalid_op": "see below",
    "facts.defined": "every op here has a value; see test_mistaken_dialects",
    "facts.bits": "this theory says nothing of it",
}


def said_by_dialects() -> set[str]:
    """Everything that a dialect may say, by the class and by the declarations that are known."""
    text = str(Dialect.__doc__).partition("Optional attributes:")[2]
    optional = re.findall(r"(?:^ {4}|; {2}|^ {17})([a-z_]+(?:, [a-z_]+)?)(?: {2,}| True)", text, re.MULTILINE)
    methods = [n for n, v in vars(Dialect).items() if callable(v) and not n.startswith("_")]
    templates = [*declared._HOLES, *declared._WORDS, *declared._BUILDS, "build.", "attr.", "in."]
    facts = MEANT | {"lanes"}
    return {
        *optional,
        *methods,
        *Dialect.__annotations__,
        *(f"inline.{t}" for t in templates),
        *(f"facts.{f}" for f in facts),
    }


def test_everything_that_a_dialect_may_say_has_a_lie_that_is_found() -> None:
    assert said_by_dialects() == {n.partition(" of ")[0] for n in LIES} | OTHERS.keys()


def first_mistake(d: Any) -> declared.Mistake | None:
    """The first mistake that verification finds, of what takes the shortest time first."""
    said = (*declared.dialect_mistakes(d), *(m for name in d.ops for m in declared.op_mistakes(d, name)))
    tried = (m for op in ("Join", "Take", "", "Flip", "Add") for m in dialect_trials._all(d, frozenset(), op, None))
    return next(itertools.chain(said, tried), None)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_lie_is_found(lie: Mapping[str, Any]) -> None:
    assert first_mistake(dialect(**{**SOUND, **lie})) is not None


@pytest.mark.long
def test_the_dialect_that_lies_are_told_of_is_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path))
    assert verify(dialect(**SOUND)) == verify(dialect(**{**SOUND, **WITHOUT})) == []
