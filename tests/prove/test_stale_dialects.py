"""What is changed in a foreign dialect, or in what it calls, re-opens the rules that use it: never fewer, and no others."""

from __future__ import annotations

import copy
import importlib
import os
import py_compile
import re
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest
from mistaken import Saturating, clip, dialect, with_op

import morok.dsl
from morok.dialect import register, verify
from morok.dsl.check import check_text
from morok.errors import UnprovedRuleError
from morok.prove import admission, distributions, foreign, ledger, promises, sources, verified
from morok.prove.api import prove
from morok.rewrite.library import load_rules

FILES = {
    "satdialect.py": """
        from collections.abc import Mapping
        from morok.dialect import NOT_CONST, OperandInfo, OpInfo, register
        import satnumbers
        from satnumbers import clip

        FACTOR = 1

        def scaled(v):
            return FACTOR * v

        def op(name, evaluate):
            pair = (OperandInfo("x"), OperandInfo("y"))
            return OpInfo(name=name, key=name.lower(), operands=pair, params=("T", "T"), result="T", domains={"T": ("sat",)},
                          commutative=name != "Sub", evaluate=evaluate, solver=f"sattheory:solve_{name.lower()}")

        def least(dtype, a, b):
            return scaled(min(a, b))

        class Saturating:
            name = "sat"
            ops = {
                "Add": op("Add", lambda d, a, b: clip(a + b)),
                "Sub": op("Sub", lambda d, a, b: satnumbers.clip(a - b)),
                "Max": op("Max", lambda d, a, b: max(a, b)),
                "Min": op("Min", least),
            }
            dtypes = {"sat": "sat"}
            classes = {"any": frozenset({"sat"}), "int": frozenset({"sat"}), "number": frozenset({"sat"})}
            inline = {}
            facts = {"low": lambda n: -100, "vmin": lambda n: -100}
            theory = "sattheory:Theory"

            def opkey(self, node): return node[0]
            def operands(self, node): return node[1:] if node[0] in ("add", "sub", "max", "min") else ()
            def attr(self, node, name): raise AttributeError(name)
            def type(self, node): return "sat"
            def same(self, a, b): return a == b
            def const_value(self, node): return node[1] if node[0] == "const" else NOT_CONST
            def const(self, dtype, value): return ("const", clip(int(value)))
            def build(self, op, operands, attrs, dtype): return (self.lower(op), *operands)
            def rebuild(self, node, operands): return (node[0], *operands)
            def lower(self, op): return op.lower()

        register(Saturating())
    """,
    "satnumbers.py": """
        LOW, HIGH = -100, 100

        def clip(v):
            return max(LOW, min(HIGH, v))
    """,
    "sattheory.py": """
        import z3
        from morok.prove.semantics.plain import IntegerTheory
        from morok.prove.semantics.term import strict
        from satlimits import LIMITS
        import satmore

        class Theory(IntegerTheory):
            limits = {"sat": (-100, 100)}

        def clipped(value, *operands):
            low, high = LIMITS["sat"]
            return strict(z3.If(value > high, high, z3.If(value < low, low, value)), *operands)

        def solve_add(w, d, a, b):
            return clipped(a.value + b.value, a, b)

        def solve_sub(w, d, a, b):
            return clipped(a.value - b.value, a, b)

        def solve_max(w, d, a, b):
            return satmore.pick(a.value > b.value, a, b)

        def solve_min(w, d, a, b):
            return TABLE["min"](a, b)

        TABLE = {"min": lambda a, b: satmore.pick(a.value < b.value, a, b)}
    """,
    "satlimits.py": """
        LIMITS = {"sat": (-100, 100)}
    """,
    "satmore.py": """
        import z3
        from morok.prove.semantics.term import strict

        def pick(condition, a, b):
            return strict(z3.If(condition, a.value, b.value), a, b)
    """,
    "satbeside.py": """
        UNUSED = 1
    """,
    "s.rules": """
        dialect sat

        group g "g"

        add: Add[x, @zero] ~> x
        sub: Sub(x, x) ~> zero(x)
        max: Max(x, x) ~> x
        min: Min(x, x) ~> x
        bound: Max(x, @const(c)) if vmin(x) >= c ~> x
    """,
}
RULES = ("add", "sub", "max", "min", "bound")
ASK = """
import json, sys, satdialect
from morok.dsl.check import check_file
from morok.prove import ledger, sources
print(json.dumps({r.own.rpartition(".")[2]: ledger.rule_digest(r) for r in check_file("s.rules").rules()}))
print("z3" in sys.modules)
"""


def python(folder: Path, code: str, cache: str = "cache") -> list[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        "MOROK_CACHE_DIR": str(folder / cache),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sat")
    for name, text in FILES.items():
        (made / name).write_text(textwrap.dedent(text))
    return made


def digests(folder: Path) -> dict[str, str]:
    import json

    said, loaded = python(folder, ASK)
    assert loaded == "False"  # no solver is needed to know which rules are proved
    found: dict[str, str] = json.loads(said)
    return found


@pytest.fixture(scope="module")
def before(folder: Path) -> dict[str, str]:
    return digests(folder)


EDITS = [
    ("an evaluator", "satdialect.py", "clip(a + b)", "clip(a + b + 1)", {"add"}),
    ("an evaluator's function", "satdialect.py", "scaled(min(a, b))", "scaled(a)", {"min"}),
    ("a callee of it", "satdialect.py", "return FACTOR * v", "return FACTOR + v", {"min"}),
    ("a module constant", "satdialect.py", "FACTOR = 1", "FACTOR = 2", {"min"}),
    ("a limit in another module", "satnumbers.py", "-100, 100", "-100, 90", set(RULES)),  # `const` clips too
    ("a callee in another module", "satnumbers.py", "min(HIGH, v)", "min(HIGH, v + 0)", set(RULES)),
    ("a key", "satdialect.py", "key=name.lower()", "key=name.lower() + '_'", set(RULES)),
    (
        "what builds nodes",
        "satdialect.py",
        "(self.lower(op), *operands)",
        "(self.lower(op), *operands[::-1])",
        set(RULES),
    ),
    ("what that calls", "satdialect.py", "return op.lower()", "return op.upper()", set(RULES)),
    ("a fact", "satdialect.py", '"vmin": lambda n: -100', '"vmin": lambda n: -99', {"bound"}),
    ("another fact", "satdialect.py", '"low": lambda n: -100', '"low": lambda n: -99', set()),
    ("a solver function", "sattheory.py", "a.value - b.value", "b.value - a.value", {"sub"}),
    ("a solver function's callee", "sattheory.py", "z3.If(value < low", "z3.If(value <= low", {"add", "sub"}),
    ("its callee in another module", "satmore.py", "a.value, b.value)", "b.value, a.value)", {"max", "min", "bound"}),
    ("a constant of the solver's", "satlimits.py", "(-100, 100)", "(-100, 90)", {"add", "sub"}),
    ("a limit of the theory", "sattheory.py", '{"sat": (-100, 100)}', '{"sat": (-100, 101)}', set(RULES)),
    ("what a table holds", "sattheory.py", "a.value < b.value", "a.value <= b.value", {"min"}),
    ("anything, where a table is called", "satbeside.py", "UNUSED = 1", "UNUSED = 2", {"min"}),
    ("a comment", "sattheory.py", "class Theory", "# of integers\nclass Theory", {"min"}),
    ("a comment in what is evaluated", "satdialect.py", "FACTOR = 1", "# one\nFACTOR = 1", {"min"}),
]


@pytest.mark.sampled(24)
@pytest.mark.parametrize(("file", "old", "new", "affected"), [e[1:] for e in EDITS], ids=[e[0] for e in EDITS])
def test_an_edit_re_opens_the_rules_that_use_it(
    folder: Path, before: dict[str, str], file: str, old: str, new: str, affected: set[str]
) -> None:
    text = (folder / file).read_text()
    assert old in text
    # whatever is written: where `solve_min` looks a function up in a table, all sources count for it
    expected = affected | {"min"}
    (folder / file).write_text(text.replace(old, new))
    try:
        after = digests(folder)
    finally:
        (folder / file).write_text(text)
    assert {r for r in RULES if before[r] != after[r]} == expected


@pytest.mark.long
def test_where_nothing_is_changed_nothing_is_re_opened(folder: Path, before: dict[str, str]) -> None:
    assert digests(folder) == before


LOAD = """
import satdialect
from morok.rewrite.library import load_rules
from morok.errors import UnprovedRuleError
{change}
try:
    load_rules("s.rules", prove={prove})
    print("loaded")
except UnprovedRuleError as refused:
    print(refused.message.splitlines()[0])
import sys
print("z3" in sys.modules)
"""


@pytest.mark.long
def test_a_stale_verdict_loads_nothing(folder: Path) -> None:
    """Through the ledger, with its fast path: first proved, then believed, then not."""
    (folder / "t.rules").write_text((folder / "s.rules").read_text())
    load = LOAD.replace("s.rules", "t.rules")
    assert python(folder, load.format(prove=True, change=""))[0] == "loaded"
    assert python(folder, load.format(prove=False, change="")) == ["loaded", "False"]
    for name, file, old, new, affected in EDITS:
        text = (folder / file).read_text()
        if not affected or "comment" in name:
            continue
        (folder / file).write_text(text.replace(old, new))
        try:
            said = python(folder, load.format(prove=False, change=""))
        finally:
            (folder / file).write_text(text)
        assert "is not proved" in said[0], name
        assert said[1] == "False"


PATCHES = [
    "import satnumbers; satnumbers.HIGH = 90",
    "satdialect.FACTOR = 2",
    "satdialect.clip = lambda v: v",
    "satdialect.Saturating.const = lambda self, d, v: ('const', v)",
    "import sattheory; sattheory.solve_add = sattheory.solve_sub",
    "import satlimits; satlimits.LIMITS['sat'] = (-100, 90)",
    "import sattheory; sattheory.Theory.limits = {'sat': (-100, 90)}",
]


@pytest.mark.long
@pytest.mark.parametrize("change", PATCHES)
def test_what_is_changed_in_a_running_process_counts(folder: Path, change: str) -> None:
    (folder / "u.rules").write_text((folder / "s.rules").read_text())
    load = LOAD.replace("s.rules", "u.rules")
    assert python(folder, load.format(prove=True, change=""))[0] == "loaded"
    assert "is not proved" in python(folder, load.format(prove=False, change=change))[0]


OUTSIDE = {
    "a file": "import pathlib\ndef high(): return int((pathlib.Path(__file__).parent / 'high.txt').read_text())",
    "an open file": "import os\ndef high(): return int(open(os.path.join(os.path.dirname(__file__), 'high.txt')).read())",
    "a file of lines": "import linecache\nHERE = __file__\ndef high(): return int(linecache.getline(HERE[:-13] + 'high.txt', 1))",
    "a file that is read once": "import functools, io\n@functools.cache\ndef high(): return int(io.open('high.txt').read())",
    "the environment": "from os import environ as given\ndef high(): return int(given.get('HIGH', 100))",
    "a default": "def high(read=open): return int(read('high.txt').read())",
    "an import in the body": "def high():\n    from pathlib import Path\n    return int(Path('high.txt').read_text())",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("high", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_what_is_read_outside_is_another_in_each_process(folder: Path, high: str) -> None:
    """No digest is of a file that an evaluator reads, or of the environment."""
    kept = (folder / "satnumbers.py").read_text()
    (folder / "satnumbers.py").write_text(f"{high}\n\ndef clip(v):\n    return max(-100, min(high(), v))\n")
    (folder / "high.txt").write_text("100")
    try:
        one, other = digests(folder), digests(folder)
    finally:
        (folder / "satnumbers.py").write_text(kept)
    assert {r for r in RULES if one[r] != other[r]} == set(RULES)


HELD = """
import functools

def logged(method):
    @functools.wraps(method)
    def wrapper(*given): return method(*given)
    return wrapper

class Sat:
    def __repr__(self): return "sat"
    def wrap(self, v): return min(100, v)

class Kind:
    step = 1

class Base:
    said = {"Max": "max"}

class Held(Base):
    name, theory, ops, classes, inline = "held", "", {}, {}, {}
    dtypes = {"sat": Sat()}
    table = {"Add": "add"}
    logs = {"Sub": "sub"}
    node = Kind
    facts = {"low": lambda n: 0, "no_overflow_of": lambda op, operands: False}
    def key(self, op): return self.table[op]
    def build(self, op, operands, attrs, dtype): return (self.key(op), *operands)
    @logged
    def rebuild(self, node, operands): return (self.logs[node[0]], *operands)
"""
REACHED = {
    "a method of a dtype": ("min(100, v)", "min(99, v)"),
    "what a method reaches through another": ('"Add": "add"', '"Add": "sub"'),
    "what a decorated method reaches": ('"Sub": "sub"', '"Sub": "add"'),
    "what a class above has": ('"Max": "max"', '"Max": "min"'),
    "the class of nodes": ("step = 1", "step = 2"),
    "a fact that no rule names": ("operands: False", "operands: True"),
}


def held(text: str) -> Any:
    scope: dict[str, Any] = {"__name__": "held_dialect"}
    exec(text, scope)
    return scope["Held"]()


@pytest.mark.parametrize(("old", "new"), REACHED.values(), ids=REACHED.keys())
def test_all_that_a_dialect_reaches_counts(old: str, new: str) -> None:
    before = foreign.common_digest(held(HELD), frozenset())
    assert HELD.count(old) == 1
    assert foreign.common_digest(held(HELD), frozenset()) == before
    assert foreign.common_digest(held(HELD.replace(old, new)), frozenset()) != before


def another_evaluator(made: Saturating) -> None:
    with_op(made, "Neg", evaluate=lambda d, a: -a + 0)


def another_key(made: Saturating) -> None:
    with_op(made, "Neg", key="minus")


def another_fact(made: Saturating) -> None:
    made.facts = {"low": lambda n: 1}


LOOKED_UP = {
    "evaluators": (
        "rebuild",
        lambda self, node, operands: self.ops["Neg"].evaluate("sat", operands[0]),
        another_evaluator,
    ),
    "keys": ("opkey", lambda self, node: self.ops[node[0]].key, another_key),
    "facts": ("type", lambda self, node: self.facts["low"](node), another_fact),
    "by a name that is made": ("same", lambda self, a, b: getattr(self, "o" + "ps")["Neg"] == b, another_evaluator),
}


@pytest.mark.parametrize(("name", "method", "change"), LOOKED_UP.values(), ids=LOOKED_UP.keys())
@pytest.mark.parametrize("does", [True, False], ids=["looked up", "not looked up"])
def test_what_methods_look_up_in_the_dialect_counts(name: str, method: Any, change: Any, does: bool) -> None:
    made = dialect(**{name: method} if does else {})
    made.facts = {"low": lambda n: 0}
    before = foreign.common_digest(made, frozenset())
    change(made)
    assert (foreign.common_digest(made, frozenset()) != before) == does


def test_a_copy_of_the_dialect_changes_nothing() -> None:
    """Python notes in its class how it is copied."""
    made = dialect()
    before = foreign.common_digest(made, frozenset())
    copy.copy(made)
    assert foreign.common_digest(made, frozenset()) == before


def test_the_facts_that_the_language_asks_unasked_are_listed() -> None:
    text = "".join(file.read_text() for file in Path(morok.dsl.__path__[0]).rglob("*.py"))
    asked = {*re.findall(r'(?<!_)facts?(?:\.get)?[\[(]"(\w+)"', text), *re.findall(r'"F_(\w+)"', text)}
    assert asked - {"no_overflow"} == foreign.UNASKED  # that one is named by the rule


@pytest.mark.long
def test_a_constant_that_the_module_of_the_solver_finds_when_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "solved_here.py").write_text(
        "import os\nfrom mistaken import strict\nSIGN = int(os.environ.get('NEVER', '-1'))\n"
        "def solve_neg(w, d, a):\n    return strict(SIGN * a.value, a)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    made = dialect()
    made.ops = {"Neg": made.ops["Neg"]}
    with_op(made, "Neg", solver="solved_here:solve_neg")
    assert verify(made) == []
    monkeypatch.setattr(importlib.import_module("solved_here"), "SIGN", 1)
    assert [e.field for e in verify(made)] == ["evaluate"]


def test_a_refusal_says_what_nobody_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    values = (n for n in (1, 2))
    made = dialect()
    text = f'dialect {made.name}\n\ngroup g "g"\n\nr: Neg(Neg(x)) ~> x\n'
    for said in (False, True):
        with pytest.raises(UnprovedRuleError, match="no proof") as refused:
            admission.admit(list(check_text(text).rules()))
        assert ("builtins.generator" in str(refused.value)) == said
        with_op(made, "Neg", evaluate=lambda d, a: next(values))


@pytest.mark.long
def test_a_contract_of_a_helper_that_builds_an_op_of_which_no_rule_speaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "building_max.py").write_text(
        "import morok\ndef make(rng):\n    yield (('const', 'sat', rng.randint(-50, 50)),)\n\n"
        "@morok.helper(arguments=make)\ndef again(x):\n    return ('max', x, x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    made = dialect()

    def state() -> str:
        extern = "extern again(x: sat) -> (q: sat)\n    ensures q == x\n"
        rule = 'r: Neg(Neg(x: sat)) let q = again(x) => q\n    "twice"\n'
        text = f'dialect {made.name}\n\nhelpers "building_max"\n\n{extern}\ngroup g "g"\n\n{rule}'
        rules = list(check_text(text).rules())
        return promises.of_rules(rules, trust_helpers=True)[id(rules[0])].state

    assert state() == "tested"
    with_op(made, "Max", evaluate=lambda d, a, b: clip(a + b))
    assert state() == "false"


@pytest.fixture
def negations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Saturating, Path]:
    """A dialect of one op, and a file with a rule of it, which goes by the name that the dialect was registered under."""
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    made = dialect()
    made.ops = {"Neg": made.ops["Neg"]}
    file = tmp_path / "neg.rules"
    file.write_text(f'dialect {made.name}\n\ngroup g "g"\n\nr: Neg(Neg(x)) ~> x\n')
    return made, file


def test_a_dialect_that_calls_itself_otherwise_counts(negations: tuple[Saturating, Path]) -> None:
    made, file = negations
    made.name = "another name"
    load_rules(file)
    with_op(made, "Neg", evaluate=lambda d, a: min(-a, 50))
    with pytest.raises(UnprovedRuleError, match="no proof"):
        load_rules(file, prove=False)


@pytest.mark.long
def test_a_dialect_that_is_registered_meanwhile_does_not_count(
    negations: tuple[Saturating, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread does so between what is asked of the file and what is asked of the ledger."""
    (made, file), real = negations, ledger.unchanged
    load_rules(file)
    register(with_op(copy.copy(made), "Neg", evaluate=lambda d, a: min(-a, 50)))

    def unchanged(*given: Any) -> Any:
        register(made)
        return real(*given)

    monkeypatch.setattr(ledger, "unchanged", unchanged)
    with pytest.raises(UnprovedRuleError, match="no proof"):
        load_rules(file, prove=False)


# The module of a solver function `f`, and the module of its own that is edited.
SOLVED = {
    "a name that is made": ("import {k}\nglobals()['f'] = lambda w, d, a: {k}.K", "k"),
    "a name that is made in a loop": (
        "def g(n): return lambda w, d, a: n\nimport {k}\nfor n in ('f',): globals()[n] = g({k}.K)",
        "k",
    ),
    "a name that is set": ("import sys, {k}\nsetattr(sys.modules[__name__], 'f', lambda w, d, a: {k}.K)", "k"),
    "a constant that is set from here": ("import {k}, {o}\n{k}.L = {o}.L\ndef f(w, d, a): return {k}.L", "o"),
    "a constant that another module sets": ("import {k}, {p}\ndef f(w, d, a): return {k}.K", "p"),
    "a pattern": (
        "import types, {k}\ndef f(w, d, a):\n    match {k}:\n        case types.ModuleType(K=n): return n",
        "k",
    ),
    "a default argument": ("import {k}\ndef f(w, d, a, m={k}): return m.K", "k"),
    "the modules that are loaded": ("import sys, {k}\ndef f(w, d, a): return sys.modules['{k}'].K", "k"),
    "a docstring": ("from {o} import g\ndef f(w, d, a): return g.__doc__", "o"),
    "a module beside, called as one of Python's": (
        "import turtledemo\ndef f(w, d, a): return turtledemo.K",
        "turtledemo",
    ),
}


@pytest.mark.parametrize(("text", "edited"), SOLVED.values(), ids=SOLVED.keys())
def test_however_a_solver_function_is_made_it_counts(
    text: str, edited: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Which is read, and never run."""
    monkeypatch.syspath_prepend(tmp_path)
    tag = f"{list(SOLVED).index(request.node.callspec.id)}"
    names = {n: f"solved_{n}{tag}" for n in "fkop"}
    patch = f"import {names['k']}\n{names['k']}.K = "
    for name, content in {
        "f": text.format(**names),
        "k": "K = 1\n",
        "o": "L = 1\ndef g():\n    'a text'\n",
        "p": f"{patch}1\n",
        "turtledemo": "K = 1\n",
    }.items():
        (tmp_path / f"{names.get(name, name)}.py").write_text(content)
    found = foreign.static_digest(names["f"], "f")
    assert foreign.static_digest(names["f"], "f") == found
    file = tmp_path / f"{names.get(edited, edited)}.py"
    file.write_text(file.read_text().replace("1\n", "2\n").replace("a text", "another"))
    assert foreign.static_digest(names["f"], "f") != found


# Modules without a file: of a solver function `f`, and one beside it.
TYPED = {
    "the function": ("def f(w, d, a): return 1", "", "typed_f"),
    "what it calls": ("def g(): return 1\ndef f(w, d, a): return g()", "", "typed_f"),
    "what it calls of another module": ("import typed_k\ndef f(w, d, a): return typed_k.K", "K = 1", "typed_k"),
    "a class that is made when it is asked for": (
        "def __getattr__(name):\n    class f:\n        limits = 1\n    return f",
        "",
        "typed_f",
    ),
}


@pytest.mark.parametrize(("text", "beside", "edited"), TYPED.values(), ids=TYPED.keys())
def test_what_was_typed_in_counts_as_it_is_loaded(
    text: str, beside: str, edited: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a notebook: another run may type in something else, and no file says what."""

    def typed(**texts: str) -> str:
        for name, content in texts.items():
            made = types.ModuleType(name)
            monkeypatch.setitem(sys.modules, name, made)
            exec(content, vars(made))
        return foreign.static_digest("typed_f", "f")

    found = typed(typed_k=beside, typed_f=text)
    assert typed(typed_k=beside, typed_f=text) == found
    texts = {"typed_k": beside, "typed_f": text}
    assert typed(**{**texts, edited: texts[edited].replace("1", "2")}) != found


def test_a_solver_function_from_a_file_that_imports_what_was_typed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "solved_beside.py").write_text("import typed_k\ndef f(w, d, a): return typed_k.K\n")
    found = set()
    for k in (1, 2):
        made = types.ModuleType("typed_k")
        monkeypatch.setitem(sys.modules, "typed_k", made)
        made.K = k  # type: ignore[attr-defined]
        found.add(foreign.static_digest("solved_beside", "f"))
    assert len(found) == 2


@pytest.mark.parametrize("how", ["edited meanwhile", "older byte code"])
def test_a_verdict_is_of_the_text_that_the_solver_was_told_of(
    how: str, negations: tuple[Saturating, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, file = negations
    word = how.split()[0]
    module = file.with_name(f"solved_{word}.py")
    file.with_name(f"far_{word}.py").write_text(
        f"def solve_neg(w, d, a):\n    import solved_{word}\n\n    return solved_{word}.f(a)\n"
    )
    with_op(made, "Neg", solver=f"far_{word}:solve_neg")
    text = "from mistaken import strict\n\ndef f(a):\n    return strict({}a.value, a)\n"
    module.write_text(text.format("-"))
    monkeypatch.syspath_prepend(file.parent)
    if how == "older byte code":
        py_compile.compile(str(module), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        module.write_text(text.format("0*"))

    def broken(rules: Any) -> dict[int, Any]:  # what is asked first: when this has been said, the text changes
        if how == "edited meanwhile":
            module.write_text(text.format("0*"))
        return {}

    monkeypatch.setattr(verified, "broken", broken)
    (found,) = prove(file, jobs=1, remember=True)
    assert (found.verdict, found.final) == ("unknown", False), found.message
    assert "dialect" in found.message
    with pytest.raises(UnprovedRuleError, match="no proof"):
        load_rules(file, prove=False)


def test_one_digest_asks_once_where_a_module_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of questions about the same few modules were most of what loading rules of a foreign dialect took."""
    asked: list[tuple[Path, Any]] = []
    within = distributions._within

    def counted(file: Path, folders: Any) -> bool:
        asked.append((file, tuple(folders)))
        return within(file, folders)

    monkeypatch.setattr(distributions, "_within", counted)
    made = dialect()
    found = sources.whole_digest(made)
    assert max(map(asked.count, asked)) <= 2  # of Python's modules, and of installed ones
    assert sources.whole_digest(made) == found
