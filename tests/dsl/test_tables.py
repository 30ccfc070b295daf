"""The parser's tables: kept, used, and made again where they are not what was written."""

from __future__ import annotations

import random
from pathlib import Path

import lark
import pytest

from morok.dsl import parse, tables
from morok.errors import RuleSyntaxError

TEXT = 'group g "some"\n\na: Add(x: i32, 0) ~> x\nb: Sub(x: i32, y) if vmin(x) > 3 ~> y\n'
WRONG = 'group g "some"\n\na: Add(x: i32 0) ~> x\n'


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "grammar"


def said() -> tuple[object, str]:
    """What a fresh parser makes of a text, and what it says of a wrong one."""
    parse._lark.cache_clear()
    found = parse.parse_text(TEXT)
    with pytest.raises(RuleSyntaxError) as refused:
        parse.parse_text(WRONG)
    return found, str(refused.value)


def test_kept_tables_parse_the_same_and_are_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = said()
    assert len(list(cache.iterdir())) == 1

    def made(*_: object, **__: object) -> None:
        raise AssertionError("the tables were made again")

    monkeypatch.setattr(lark.Lark, "__init__", made)
    assert said() == first


def test_damaged_tables_are_made_again(cache: Path) -> None:
    first = said()
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    chance = random.Random(0)
    for content in (b"", whole[:-1], *(flipped(whole, chance) for _ in range(3))):
        file.write_bytes(content)
        assert said() == first
        assert tables._read(file) is not None


def flipped(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(changed)


@pytest.mark.filterwarnings("ignore")
def test_a_folder_that_others_can_write_is_not_used(cache: Path) -> None:
    first = said()
    (file,) = cache.iterdir()
    cache.chmod(0o777)
    file.write_bytes(b"")
    assert said() == first
    assert file.read_bytes() == b""
