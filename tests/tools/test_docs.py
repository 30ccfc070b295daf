"""The book of rules: every rule is in it, links lead somewhere, it needs no network, and it is the same each time."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from morok.dsl.check import check_text
from morok.ir.expression_parser import parse
from morok.rewrite.library import catalogue, rules_dir
from morok.rewrite.ruleset import RuleSet
from morok.tools.book.pages import coloured
from morok.tools.book.rule_examples import examples
from morok.tools.catalogue import entries
from morok.tools.cli import main

VOID = {"meta", "link", "input"}


class Page(HTMLParser):
    """Ids, links and resources of a page; asserts that its tags are balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.resources: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name == "href":
                (self.links if tag == "a" else self.resources).append(value or "")
            elif name == "src":
                self.resources.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("docs") / "book"
    assert main(["docs", "--out", str(out)]) == 0
    return out


@pytest.mark.long
def test_every_rule_is_in_it(book: Path) -> None:
    page = Page((book / "index.html").read_text())
    ids = set(page.ids)
    assert len(ids) == len(page.ids)
    assert {rule.name for rule in catalogue()} <= ids
    assert "unproved" not in (book / "index.html").read_text()


@pytest.mark.long
def test_every_rule_of_the_texts_is_in_it(book: Path) -> None:
    assert {e.id for e in entries(rules_dir())} <= set(Page((book / "texts.html").read_text()).ids)


@pytest.mark.long
def test_links_lead_somewhere_and_nothing_is_loaded_from_elsewhere(book: Path) -> None:
    files = {p.name for p in book.iterdir()}
    pages = {name: Page((book / name).read_text()) for name in files if name.endswith(".html")}
    for name, page in pages.items():
        assert set(page.resources) <= files
        for link in page.links:
            file, _, anchor = link.partition("#")
            assert not anchor or anchor in pages[file or name].ids, link
            assert not file or file in pages
    for name in files:
        assert "http" not in (book / name).read_text().replace("http-equiv", "")


@pytest.mark.long
def test_every_rule_fires_in_an_example(book: Path) -> None:
    text = (book / "index.html").read_text()
    assert text.count("<article") == text.count("<div class=example>")


def test_the_same_bytes_each_time_for_rules_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my.rules"
    file.write_text(
        '# About <signs> & more.\n\ngroup signs "minus"\n\nback: Neg(Neg(x)) ~> x\n    "<b> two & two"\n'
        "for op in binary [Add, Mul] {\n    turn: op(Neg(x: int), y) if vmin(y) < 3 ~> op(y, Neg(x))\n}\n"
    )
    made = []
    for n in (1, 2):
        assert main(["docs", str(file), "--out", str(tmp_path / f"out{n}")]) == 0
        made.append({p.name: p.read_bytes() for p in (tmp_path / f"out{n}").iterdir()})
    assert made[0] == made[1]
    assert set(made[0]) == {"index.html", "book.css", "book.js"}
    page = Page(made[0]["index.html"].decode())
    assert {"group-signs", "my.signs.back", "my.signs.turn.Add", "my.signs.turn.Mul"} <= set(page.ids)
    for words in ("About <signs> & more.", "<b> two & two", "if vmin(y) < 3", "Add, Mul", "unproved"):
        assert words in page.words
    assert "3 rules in 2 entries, 2 with an example" in capsys.readouterr().out
    assert main(["docs", str(file), "--out", str(file)]) == 2


def test_examples_are_what_the_rules_do() -> None:
    text = (
        "a: Idiv(Idiv(x: index, @const(a)), @const(b)) if a > 0 and b > 0 let c = a * b ~> Idiv(x, c)\n"
        "b: Reduce { src, ranges: [Range(e), rest..], op } if vmin(e) == 1 and vmax(e) == 1 ~> Reduce { src, ranges: rest, op }\n"
        "c: Gep { vector: Vectorize(xs..), indices: [i] } ~> xs[i]\n"
        "d: Add[x: float, @zero] ~> x assuming nsz\n"
        'e: Mul(x: i32, 2) ~> Shl(x, 1)\n    "own"\n    example Mul(n: i32, 2) ~> Shl(n: i32, 1)\n'
        "f: Add(x: i8, y) if vmin(x) > 300 ~> x\n"
    )
    rules = list(check_text(f"group g\n\n{text}").rules())
    found = examples(rules)
    assert set(found) == {"g.a", "g.b", "g.c", "g.d", "g.e"}
    assert found["g.e"] == ("Mul(n: i32, 2)", "Shl(n: i32, 1)")
    for rule in rules[:3]:
        hit = RuleSet.of([rule], unproved=True).rewrite_node(parse(found[rule.name].before))
        assert hit is not None
        assert hit[0].text() == found[rule.name].after


def test_colours_change_no_character() -> None:
    text = 'a: Add[x, @const(c)] if c < 3 and "a & b" ~> Sub(x, -1.5)'
    assert Page(f"<p>{coloured(text)}</p>").words == text
    assert re.search(r'<span class="op">Add</span>', coloured(text))
