"""The parser of rule text. Its LALR tables are made from `grammar.lark` once per machine, and cached on disk."""

from __future__ import annotations

import hashlib
import marshal
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from morok.disk_cache import cache_of
from morok.dsl.lexer import TokenLexer, Vocabulary
from morok.dsl.syntax_builder import Builder

FOLDER: Final = "grammar"
LIMIT: Final = 4 << 20  # bytes; tables take 0.1 MB
_STARTS: Final = ["file", "heads", "rules", "template_head", "group_head", "extern"]
_OWN: Final = ("transformer", "lexer")  # options whose values are our own code, which cannot be serialized


@lru_cache(maxsize=1)
def parser() -> tuple[Any, Vocabulary]:
    """The parser and its vocabulary, made on first use: in 0.02 s from cached tables, else in 0.15 s."""
    text = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    cache, key = cache_of(FOLDER, LIMIT), _key(text)
    kept = None if cache is None else cache.get(key)
    made = _of_tables(kept) if kept is not None else None
    if made is None:
        made = lark.Lark(
            text, parser="lalr", lexer=TokenLexer, start=_STARTS, maybe_placeholders=False, transformer=Builder()
        )
        if cache is not None:
            cache.put(key, _tables(made))
    return made, Vocabulary.of(made.terminals)


def forget() -> None:
    """Free the parser (11,000 objects); the next use makes it again."""
    parser.cache_clear()


def _key(grammar: str) -> str:
    """The cache key of the tables: a digest of everything that determines them."""
    versions = (lark.__version__, sys.implementation.cache_tag, str(marshal.version), *_STARTS)
    return hashlib.sha256(
        "\0".join([*versions, Path(__file__).read_text(encoding="utf-8"), grammar]).encode()
    ).hexdigest()


def _tables(made: lark.Lark) -> bytes:
    """The tables of a parser as bytes, without our own code."""
    data, memo = made.memo_serialize([TerminalDef, Rule])
    data["options"] = {name: value for name, value in data["options"].items() if name not in _OWN}
    data["parser"]["lexer_conf"]["lexer_type"] = None
    return marshal.dumps({"data": data, "memo": memo})


def _of_tables(kept: bytes) -> lark.Lark | None:
    """The parser with these tables; None if the bytes hold none."""
    try:
        tables = marshal.loads(kept)
        tables["data"]["options"]["lexer"] = tables["data"]["parser"]["lexer_conf"]["lexer_type"] = TokenLexer
        return lark.Lark.__new__(lark.Lark)._load(tables, transformer=Builder())
    except (ValueError, TypeError, KeyError, EOFError):
        return None
