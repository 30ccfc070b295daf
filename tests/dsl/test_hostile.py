"""Input that is no rule file ends in an error of ours: no RecursionError, no hang, no crash."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morok.dsl import parse
from morok.dsl.check import check_text, partly_checked
from morok.dsl.file_bytes import MAX_BYTES
from morok.dsl.format import format_text
from morok.dsl.lexer import MAX_DEPTH, MAX_ITEMS, MAX_NAME
from morok.dsl.parse import parse_file, parse_text, recover
from morok.errors import RuleEncodingError, RuleError, RuleLimitError

N = 10_000
DEEP = {
    "calls": "a: " + "Neg(" * N + "x" + ")" * N + " ~> x",
    "unclosed": "a: " + "Neg(" * N,
    "closed": "a: " + ")" * N,
    "groups": "a: " + "(" * N + "x" + ")" * N + " ~> x",
    "lists": "a: Neg(x) ~> " + "[" * N + "]" * N,
    "structs": "a: " + "Load { index: " * N + "x" + " }" * N + " ~> x",
    "not": "a: x: int if " + "not " * N + "true ~> x",
    "minus": "a: x: int if " + "- " * N + "1 > 0 ~> x",
    "complement": "a: x: int if " + "~" * N + "1 > 0 ~> x",
    "sum": "a: x: int if " + "1 + " * N + "1 > 0 ~> x",
    "and": "a: x: int if " + "true and " * N + "true ~> x",
    "binds": "a: " + "".join(f"x{i} @ " for i in range(N)) + "x ~> x",
    "not types": "a: Neg(x: " + "!" * N + "float) ~> x",
    "indices": "a: Vectorize(xs..) ~> xs" + "[0]" * N,
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", DEEP)
def test_deep_nesting(name: str) -> None:
    with pytest.raises(RuleError) as caught:
        check_text(f"group g\n\n{DEEP[name]}\n")
    if name != "closed":
        assert any(isinstance(e, RuleLimitError) for e in caught.value.errors)


def test_the_deepest_nesting_that_is_accepted() -> None:
    n = MAX_DEPTH - 1
    text = f"group g\n\na: {'Neg(' * n}x{')' * n} ~> {'Neg(' * n}x{')' * n}\n"
    assert len(list(check_text(text).rules())) == 1
    assert parse_text(format_text(text)) == parse_text(text)


WIDE = {
    "operands": "a: Vectorize(" + ", ".join(f"x{i}" for i in range(N)) + ") ~> x0",
    "alternatives": "a: " + " | ".join(["Neg(x)"] * 2000) + " ~> Neg(x)",
    "comparisons": "a: x: int if " + " < ".join(["1"] * N) + " ~> x",
    "guards": "a: x: int " + "if true " * N + " ~> x",
    "names": "a: " + "x" * 100_000 + " ~> y",
}


@pytest.mark.long
@pytest.mark.parametrize("name", WIDE)
def test_wide_rules(name: str) -> None:
    start = time.process_time()
    with contextlib.suppress(RuleError):
        check_text(f"group g\n\n{WIDE[name]}\n")
    assert time.process_time() - start < 20


def test_a_file_beyond_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "big.rules"
    path.write_text("# " + "x" * MAX_BYTES)
    with pytest.raises(RuleLimitError, match="at most"):
        parse_file(path)
    with pytest.raises(RuleLimitError):
        parse_text("# " + "x" * MAX_BYTES)


def test_nul_bytes(tmp_path: Path) -> None:
    path = tmp_path / "nul.rules"
    path.write_bytes(b"group g\n\na: Neg(\0x) ~> x\n")
    with pytest.raises(RuleEncodingError) as caught:
        parse_file(path)
    assert str(caught.value.place) == f"{path}:3:8"


def test_invalid_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.rules"
    path.write_bytes('group g "ä"\n\n'.encode() + b"# \xe4\n")
    with pytest.raises(RuleEncodingError) as caught:
        parse_file(path)
    assert str(caught.value.place) == f"{path}:3:3"


def test_other_line_ends_and_marks(tmp_path: Path) -> None:
    path = tmp_path / "windows.rules"
    path.write_bytes("\ufeffgroup g\r\n\r\na: Neg(Neg(x)) ~> x # a comment\r\n".encode())
    assert parse_file(path).groups == parse_text("group g\n\na: Neg(Neg(x)) ~> x\n").groups


def test_long_numbers() -> None:
    with pytest.raises(RuleLimitError, match="digits"):
        parse_text(f"group g\n\na: Add[x, {'9' * 100_000}] ~> x\n")


def test_many_mistakes() -> None:
    text = "group g\n\n" + "".join(f"a{i}: Add(x, y ~> x\n" for i in range(500))
    with pytest.raises(RuleError) as caught:
        check_text(text)
    assert len(caught.value.errors) == 100
    assert "500 mistakes (the first 100 are shown)" in caught.value.message


def test_a_file_is_cut_into_lines_once_for_all_its_mistakes() -> None:
    """Cut anew for each, a file of a megabyte with a mistake in every line takes minutes."""
    parse._lines.cache_clear()
    with pytest.raises(RuleError):
        check_text("group g\n\n" + "".join(f"a{i}: Add(x: i32, {i}) ~> y\n" for i in range(200)))
    assert parse._lines.cache_info().misses == 1
    assert parse._lines.cache_info().hits == 199


@pytest.mark.parametrize(
    "rule",
    [
        "a: Vectorize({xs}) ~> x0",
        "a: Permute {{ src: x, axes: [{numbers}] }} ~> x",
        "a: Neg(x: f32) if sum([{numbers}]) > 0 ~> x",
        "for op in unary [{ops}] {{\n    a: op(x: f32) ~> x\n}}",
    ],
)
def test_a_list_has_a_limit(rule: str) -> None:
    """Without one, the proof of a rule about a thousand operands ran out of stack, and of as many axes did not end."""

    def text(n: int) -> str:
        names = (", ".join(f"x{i}" for i in range(n)), ", ".join(map(str, range(n))), ", ".join(["Neg"] * n))
        return f"group g\n\n{rule.format(**dict(zip(('xs', 'numbers', 'ops'), names, strict=True)))}\n"

    assert len(recover(text(MAX_ITEMS)).file.groups[0].items) == 1
    assert not recover(text(MAX_ITEMS)).errors
    with pytest.raises(RuleLimitError, match="a list of more than 256 items"):
        parse_text(text(MAX_ITEMS + 1))


@pytest.mark.parametrize(
    "rule", ["{}: Neg(x) ~> x", "a: {}(x) ~> x", "a: Neg({}) ~> {}", "a: Neg(x: {}) ~> x", "a: Neg(x) if {}(x) ~> x"]
)
def test_a_name_has_a_limit(rule: str) -> None:
    """Without one, messages about a mistake printed whole the megabyte that it was about."""
    with pytest.raises(RuleLimitError, match="a name of 101 characters"):
        parse_text(f"group g\n\n{rule.replace('{}', 'n' * (MAX_NAME + 1))}\n")
    assert parse_text(f"group g\n\n{rule.replace('{}', 'n' * MAX_NAME)}\n").groups


def test_a_long_string_is_not_printed_whole() -> None:
    with pytest.raises(RuleError) as caught:
        parse_text('group g\n\na: Add(x, "' + "y" * 90000 + '") ~> x\n')
    assert len(str(caught.value)) < 1000


def test_names_in_a_block_are_no_list() -> None:
    names = ",\n            ".join(f"a{k} = Neg(x)" for k in range(400))
    assert not recover(
        f"group g\n\nfor op in unary [Neg] {{\n    a: op(x)\n        let {names}\n        ~> a0\n}}\n"
    ).errors


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("9" * 401, "a number of 401 digits"),
        ("Neg(" * 70 + "x" + ")" * 70, "brackets are nested more than 64 deep"),
        ("Vectorize(" + "x, " * 300 + "x)", "a list of more than 256 items"),
    ],
)
def test_a_rule_beyond_a_limit_leaves_the_others_alone(target: str, said: str) -> None:
    text = f"group g\n\na: Neg(Neg(x)) ~> x\n\nb: Neg(x: i32) ~> {target}\n\nc: Add(x: i32, 0) ~> x\n"
    checked, errors = partly_checked(text)
    assert [e.message for e in errors] == [said]
    assert [e.place.line for e in errors if e.place] == [5]
    assert checked is not None
    assert [r.own for r in checked.rules()] == ["g.a", "g.c"]


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# nothing", "group g", 'group g "doc"\n', "dialect morok\n", "group a group b"]
)
def test_next_to_nothing(text: str) -> None:
    assert list(check_text(text).rules()) == []
    assert parse_text(format_text(text)) == parse_text(text)


PIECES = [
    *(
        "group g\n",
        "group",
        "a: ",
        "\nb: ",
        "Add(",
        "Mul[",
        "x",
        "y",
        ", ",
        ")",
        "]",
        "{",
        "}",
        " ~> ",
        " => ",
        " if ",
        " let ",
        "=",
    ),
    *(
        "@zero",
        "@const(v)",
        "@",
        ":",
        " int",
        "..",
        "..=",
        " for op in binary [Add] {",
        "\n",
        '"doc"',
        '"',
        "#",
        " example ",
        "?",
    ),
    *(
        "extern f(x: index) -> ",
        "(y: index)",
        " assuming nsz",
        "1",
        "-2.5",
        "1e400",
        " not ",
        " and ",
        "<",
        "|",
        "!",
        "ptr(",
        " x 4",
    ),
    *("Some(", "None", "$", "\\", "dialect morok\n", 'helpers "m"\n', "@context C;"),
]


@pytest.mark.long
@given(st.lists(st.sampled_from(PIECES), max_size=30))
@settings(max_examples=300)
def test_any_pieces(pieces: list[str]) -> None:
    _no_surprise("group g\n\na: " + "".join(pieces))


@pytest.mark.long
@given(st.text(max_size=80))
@settings(max_examples=200)
def test_any_text(text: str) -> None:
    _no_surprise(text)


def _no_surprise(text: str) -> None:
    try:
        checked = check_text(text)
    except RuleError as e:
        for problem in e.errors:
            assert problem.code.startswith("MRK1")
            assert problem.place is not None
            assert str(problem)
        return
    assert parse_text(format_text(text)) == checked.syntax


@pytest.mark.long
def test_a_library_of_3_000_lines() -> None:
    lines = (
        "r{i}: Add[Mod(x: index, n), Mul[Idiv(x, n), n]] if vmin(x) >= {i} and vmax(n) < 9",
        "    ~> Idiv(Add(x, {i}), n)",
        '    "doc"',
    )
    rules = "\n".join("\n".join(lines).format(i=i) for i in range(1000))
    text = f"group g\n\n{rules}\n"
    assert text.count("\n") >= 3000
    assert len(parse_text(text).groups[0].items) == 1000
