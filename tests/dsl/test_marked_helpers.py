"""A rule file runs no code: the functions it names are marked in their module's text, which is read and not run."""

from __future__ import annotations

import importlib.machinery
import zipfile
from pathlib import Path

import pytest

import morok
from morok.dsl.check import check_file, check_text
from morok.dsl.helpers import Unreadable, definition, outline
from morok.errors import RuleError, UntrustedHelperError, UsageError
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.prove.api import prove
from morok.rewrite.examples import run_examples
from morok.rewrite.ruleset import RuleSet
from morok.tools.cli import main

RULE = 'group g "one"\n\nr: Mul(x: index, @const(c)) if c % 2 == 0 let h = half(c) => Mul(Mul(x, 2), h)\n    "a rule"\n'
HALF = "extern half(n: const) -> (h: const)?\n    requires n % 2 == 0\n    ensures n == 2 * h\n"
GOOD = "import morok\n\n@morok.helper\ndef half(n):\n    return n // 2\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def mistakes(text: str) -> str:
    with pytest.raises(RuleError) as caught:
        check_text(text, "pack.rules")
    return "\n".join(map(str, caught.value.errors))


@pytest.mark.parametrize(
    ("head", "extern"),
    [
        ("os", "extern _exit(c: int) -> (r: int)"),
        ("os", "extern system(c: int) -> (r: int)"),
        ("subprocess", "extern run(c: int) -> (r: int)"),
        ("builtins", "extern exit(c: int) -> (r: int)"),
        ("math", "extern factorial(c: int) -> (r: int)"),
        ("morok.tools.cli", "extern main(c: int) -> (r: int)"),
        ("morok", "extern helper(c: int) -> (r: int)"),
        ("this", "extern s(c: int) -> (r: int)"),
    ],
)
def test_what_is_not_marked_cannot_be_named(head: str, extern: str) -> None:
    name = extern.split("(")[0].removeprefix("extern ")
    text = f'helpers "{head}"\n{extern}\ngroup g "d"\nr: Add(x: i32, @const(c)) let h = {name}(c) ~> x\n    "a rule"\n'
    shown = mistakes(text)
    assert f"pack.rules:2:8: MRK103: the helper {name}: " in shown
    assert "a function that its module marks with @morok.helper" in shown


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("def half(n): return n // 2\n", "half of mine is not marked as a helper"),
        ("import morok as m\ndef half(n): return n // 2\n", "write `@m.helper` above its `def` in mine.py:2"),
        ("from morok import helper as h\ndef half(n): return n // 2\n", "write `@h` above its `def` in mine.py:2"),
        ("def half(n): return n // 2\n", "and `import morok` at the head of the module"),
        (GOOD.replace("half", "halves"), "did you mean halves?"),
        (GOOD + "half = print\n", "binds half more than once, in lines 4 and 6"),
        (GOOD + "for half in (): pass\n", "binds half more than once"),
        (GOOD + "if True:\n    from os import _exit as half\n", "binds half more than once"),
        (GOOD + "del half\n", "binds half more than once"),
        (GOOD + "print(half := 3)\n", "binds half more than once"),
        ("import morok\nif True:\n    @morok.helper\n    def half(n): return n // 2\n", "stands in a block"),
        ("import morok\nclass K:\n    @morok.helper\n    def half(n): return n // 2\n", "mine has no function half"),
        ("import morok\nhalf = morok.helper(lambda n: n // 2)\n", "is no `def`"),
        ("import morok\n@morok.helper\nasync def half(n): return n // 2\n", "is no `def`"),
        ("def helper(f): return f\n@helper\ndef half(n): return n // 2\n", "not marked"),
        ("from morok import helper\nhelper = print\n@helper\ndef half(n): return n // 2\n", "not marked"),
        ("from other import helper\n@helper\ndef half(n): return n // 2\n", "not marked"),
        ("try:\n    import morok\nexcept ImportError: pass\n@morok.helper\ndef half(n): return n // 2\n", "not marked"),
        ("import morok.tools as morok\n@morok.helper\ndef half(n): return n // 2\n", "not marked"),
        ("def half(n) return\n", "mine.py:1 is no Python"),
        ("from mine import half\n", "an import of itself"),
        ("from .mine import half\n", "an import of itself"),
        ("from elsewhere import half\n", "No module named 'elsewhere'"),
        ("x = " + "(" * 5000 + ")" * 5000 + "\n", "is no Python"),
    ],
)
def test_what_is_no_marked_function(folder: Path, module: str, said: str) -> None:
    (folder / "mine.py").write_text(module)
    assert said in mistakes(f'helpers "mine"\n{HALF}{RULE}')


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "head",
    [
        "import morok\n@morok.helper\n",
        "import morok as m\n@m.helper\n",
        "from morok import helper\n@helper\n",
        "from morok import Tensor, helper as named\n@named\n",
        "from morok.marks import helper\n@helper\n",
        "import morok.marks\n@morok.marks.helper\n",
        "import morok\nimport morok.dialect\n@morok.helper\n",
        "import functools, morok\n@functools.cache\n@morok.helper\n",
        "import functools, morok\n@morok.helper(context=dict)\n@functools.cache\n",
    ],
)
def test_marked_under_whatever_name(folder: Path, head: str) -> None:
    (folder / "mine.py").write_text(f"{head}def half(n):\n    return n // 2\n")
    (rule,) = check_text(f'helpers "mine"\n{HALF}{RULE}').rules()
    assert rule.helpers == "mine"
    assert [v.verdict for v in prove([rule], jobs=1)] == ["proved"]


def test_of_a_long_module_nothing_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (folder / "mine.py").open("wb") as file:
        file.write(GOOD.encode())
        file.truncate(1 << 40)  # more than fits anywhere: it has no blocks
    monkeypatch.setattr(importlib.machinery.SourceFileLoader, "get_source", None)
    assert "1,099,511,627,776 bytes, and at most 16,000,000 are read" in mistakes(f'helpers "mine"\n{HALF}{RULE}')


@pytest.mark.parametrize("name", ["", ".mine", "a..b", "a b", "../mine", "mine.py", "mine:half", "é.", "a.1"])
def test_names_of_no_module(folder: Path, name: str) -> None:
    (folder / "mine.py").write_text(GOOD)
    assert "MRK103: the helper half" in mistakes(f'helpers "{name}"\n{HALF}{RULE}')


@pytest.mark.parametrize(
    ("definition", "extern", "said"),
    [
        ("def half(n, k):", HALF, "is called with 1 arguments, and is half(n, k)"),
        ("def half():", HALF, "is called with 1 arguments, and is half()"),
        ("def half(n, *, k):", HALF, "is called with 1 arguments, and is half(n, *, k)"),
        ("def half(n) -> int | None:", HALF.replace("?", ""), "may decline, says"),
        ("def half(n) -> 'Optional[int]':", HALF.replace("?", ""), "may decline, says"),
        ("def half(n) -> tuple[int, int, int] | None:", HALF.replace("h: const", "h: const, k: const"), "has 2 results, and 3"),
        ("def half(k, n):", HALF.replace("n: const", "n: const, k: const"), "in another order than half(k, n)"),
    ],
)  # fmt: skip
def test_declarations_that_the_text_contradicts(folder: Path, definition: str, extern: str, said: str) -> None:
    (folder / "mine.py").write_text(f"import morok\n\n@morok.helper\n{definition}\n    return None\n")
    shown = mistakes(f'helpers "mine"\n{extern}{RULE}')
    assert "pack.rules:2:8: MRK102" in shown
    assert said in shown
    assert "mine.py:4" in shown


@pytest.mark.parametrize(
    "definition", ["def half(*n):", "def half(n, k=3):", "def half(n, /):", "def half(anything) -> 'int|None':"]
)
def test_declarations_that_fit(folder: Path, definition: str) -> None:
    (folder / "mine.py").write_text(f"import morok\n\n@morok.helper\n{definition}\n    return None\n")
    assert len(list(check_text(f'helpers "mine"\n{HALF}{RULE}').rules())) == 1


def test_a_context_is_one_argument_more(folder: Path) -> None:
    (folder / "mine.py").write_text("import morok\n\n@morok.helper\ndef half(n, plan):\n    return None\n")
    text = f'helpers "mine"\n{HALF}{RULE}'
    assert "is called with 1 arguments" in mistakes(text)
    assert len(list(check_text(text.replace('"one"\n', '"one"\n@context Plan;\n')).rules())) == 1


EXITS = "import os\nos._exit(7)\n"
WRITES = "open({file!r}, 'w').close()\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("where", ["module", "package", "parent", "namespace", "imported"])
def test_no_command_runs_a_helper_module(folder: Path, where: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The module would end the process, or its package would: checking, proving, laying out and explaining do not."""
    effect = folder / "effect"
    bad = WRITES.format(file=str(effect)) + EXITS
    package = folder / "pack_of_mine" / "inner"
    package.mkdir(parents=True)
    if where != "namespace":
        (package / "__init__.py").write_text(bad if where == "package" else "")
        (package.parent / "__init__.py").write_text(bad if where == "parent" else "")
    (package / "terms.py").write_text(GOOD + bad)
    if where == "imported":
        (package / "first.py").write_text(bad + "from .terms import half\n")
    module = "pack_of_mine.inner.first" if where == "imported" else "pack_of_mine.inner.terms"
    file = folder / "mine.rules"
    file.write_text(f'helpers "{module}"\n\n{HALF}\n{RULE}')
    assert main(["check", str(file)]) == 0
    assert main(["fmt", "--check", str(file)]) in (0, 1)
    assert main(["prove", "--no-cache", str(file)]) in (0, 3)
    assert main(["prove", str(file)]) in (0, 3)
    main(["explain", "mine.g.r", "--rules", str(file)])
    assert not effect.exists()
    assert "half" not in capsys.readouterr().err


def test_modules_in_zip_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = folder / "packed.zip"
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr("zipped/__init__.py", "raise SystemExit(9)\n")
        z.writestr("zipped/terms.py", GOOD)
    monkeypatch.syspath_prepend(str(archive))
    assert definition("zipped.terms", "half").parameters == ("n",)


def test_an_import_of_a_marked_function_is_read(folder: Path) -> None:
    (folder / "away").mkdir()
    (folder / "away" / "__init__.py").write_text("from .deep import half as halved\n")
    (folder / "away" / "deep.py").write_text(GOOD)
    made = definition("away", "halved")
    assert (made.name, made.parameters) == ("half", ("n",))
    with pytest.raises(Unreadable, match="has no function half"):
        definition("away", "half")
    assert outline("away.deep").helpers() == ["half"]


@pytest.mark.long
def test_every_built_in_helper_is_marked() -> None:
    from morok.rewrite.library import rules_dir

    files = [check_file(path) for path in sorted(rules_dir().rglob("*.rules"))]
    named = [(f.syntax.helpers, e.name) for f in files for e in f.syntax.externs]
    assert len(named) > 40
    assert all(definition(str(module), name).name == name for module, name in named)


def test_examples_and_firing_ask_for_trust(folder: Path) -> None:
    (folder / "asked.py").write_text(GOOD)
    example = RULE + "    example Mul(x: index, 6) ~> Mul(Mul(x: index, 2), 3)\n"
    checked = check_text(f'helpers "asked"\n{HALF}{example}')
    (error,) = run_examples(checked).errors
    assert error.code == "MRK107"
    assert "asked, Python code that nobody said to trust" in error.message
    assert "--trust-helpers" in error.hint
    from morok.ir.expression_parser import parse

    with pytest.raises(UntrustedHelperError, match="nobody said to trust"):
        RuleSet.of(list(checked.rules()), unproved=True).rewrite_node(parse("Mul(x: index, 6)"))


def test_a_mark_that_only_the_text_has_is_none(folder: Path) -> None:
    """A module may do anything when it runs; what it then calls `half` must be what its text marks."""
    from morok.dsl.compiled import _helper
    from morok.errors import UnknownNameError
    from morok.marks import trust

    (folder / "turned.py").write_text(GOOD + "globals()['half'] = print\n")
    assert definition("turned", "half").parameters == ("n",)
    trust("turned")
    with pytest.raises(UnknownNameError, match="half of turned is not marked"):
        _helper("turned:half")


def test_loading_and_simplifying_ask_for_trust(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import morok

    (folder / "loaded_terms.py").write_text(GOOD)
    file = folder / "mine.rules"
    file.write_text(
        f'helpers "loaded_terms"\n\n{HALF}\n{RULE}    example Mul(x: index, 6) ~> Mul(Mul(x: index, 2), 3)\n'
    )
    for _ in range(2):  # proved, and then from the ledger
        with pytest.raises(UntrustedHelperError, match=r"mine.g.r calls half of loaded_terms") as caught:
            morok.load_rules(file)
        assert "trust_helpers=True" in caught.value.hint
    assert main(["simplify", "Mul(x: index, 6)", "--rules", str(file)]) == 2
    assert main(["check", str(file)]) == 2
    assert "--trust-helpers" in capsys.readouterr().err
    assert main(["check", "--trust-helpers", str(file)]) == 0
    rules = morok.load_rules(file, trust_helpers=True)
    x = morok.UOp.var("x", morok.dtypes.index, 0, 9)
    assert rules["g.r"].apply(x * 6) is UOp.new(Op.Mul, (x * 2, UOp.const(3)))


@pytest.mark.parametrize("what", [list, len, 3, "half"])
def test_what_cannot_be_marked(what: object) -> None:
    for mark in (morok.helper, morok.helper()):
        with pytest.raises(UsageError, match="marks a function"):
            mark(what)  # type: ignore[call-overload, type-var]
