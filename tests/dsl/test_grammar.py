"""The tables of the grammar that a machine keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from morok.dsl import grammar
from morok.dsl.lexer import tokenize
from morok.rewrite.library import rules_dir

TEXT = (rules_dir() / "algebra" / "identity.rules").read_text()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def parsed() -> object:
    grammar.parser.cache_clear()
    made, vocabulary = grammar.parser()
    return made.parse(tokenize(TEXT, "identity", vocabulary)[0], start="file")


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.o"))


def kept(entry: Path) -> bool:
    """Truth of an entry being whole, and large enough for tables."""
    cache = grammar.cache_of(grammar.FOLDER, grammar.LIMIT)
    return cache is not None and len(cache.get(entry.stem) or b"") > 10_000


def test_tables_that_are_kept_read_what_the_grammar_does(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = parsed()
    assert len(entries(folder)) == 1
    monkeypatch.setattr(grammar, "_tables", None)  # nothing is made
    monkeypatch.setattr(grammar.lark.Lark, "__init__", None)
    assert parsed() == made


@pytest.mark.sampled(40)
@pytest.mark.parametrize("written", [b"", b"N", b"\xfb\x00\x00\x00\x00", b"no tables", b"\x00" * 100])
def test_what_is_no_tables_is_made_again(folder: Path, written: bytes) -> None:
    made = parsed()
    cache = grammar.cache_of(grammar.FOLDER, grammar.LIMIT)
    assert cache is not None
    (entry,) = entries(folder)
    assert cache.put(entry.stem, written)
    assert parsed() == made
    assert kept(entry)


@pytest.mark.long
def test_a_damaged_entry_is_made_again(folder: Path) -> None:
    made = parsed()
    (entry,) = entries(folder)
    whole = entry.read_bytes()
    for at in range(0, len(whole), len(whole) // 20):
        entry.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        assert parsed() == made
        assert kept(entry)


def test_tables_of_another_grammar_are_others(folder: Path) -> None:
    text = Path(grammar.__file__).with_name("grammar.lark").read_text()
    assert len({grammar._key(text), grammar._key(text + "\n")}) == 2
