"""The tokens of `.rules` text, and the first limits on hostile text.

The words and signs come from `grammar.lark`; this file adds what a regular expression cannot express: a limit on the depth of
brackets, and the end of an `example`. Text that is no token becomes an error token, which the grammar never takes: lexing
never stops half way, and the parser reports every kind of mistake in one manner.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from lark.lexer import Lexer

from morok.dsl.file_bytes import MAX_BYTES
from morok.dsl.syntax import Span
from morok.errors import Place, RuleEncodingError, RuleLimitError

MAX_DEPTH: Final = 64
MAX_ITEMS: Final = 256  # of a list, as operands are one: a rule about more says so by a sequence
MAX_DIGITS: Final = 400
MAX_NAME: Final = 100  # characters: messages print names, and a rule's three are the name of its file of obligations


class Tok:
    """A token as lark's parser wants it (`type`, position), with its text and whether it is the first of its line."""

    __slots__ = ("type", "value", "file", "line", "column", "end_line", "end_column", "start_pos", "end_pos", "first")

    def __init__(self, type_: str, value: str, file: str, line: int, column: int, start: int, first: bool) -> None:
        self.type = type_
        self.value = value
        self.file = file
        self.line = self.end_line = line
        self.column = column
        self.end_column = column + len(value)
        self.start_pos = start
        self.end_pos = start + len(value)
        self.first = first

    @property
    def span(self) -> Span:
        return Span(self.file, self.line, self.column, self.end_line, self.end_column)

    def __repr__(self) -> str:
        return f"{self.type}({self.value!r})"

    @classmethod
    def new_borrow_pos(cls, type_: str, value: str, other: Tok) -> Tok:
        return cls(type_, value, other.file, other.end_line, other.end_column, other.end_pos, False)


@dataclass(frozen=True, slots=True)
class Comment:
    """`# text`, and where it stands; `own_line` when nothing precedes it on its line."""

    text: str
    line: int
    column: int
    own_line: bool


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens of the grammar: keywords, signs, and one regular expression for all tokens."""

    words: dict[str, str]
    signs: dict[str, str]
    scanner: re.Pattern[str]

    @classmethod
    def of(cls, terminals: Any) -> Vocabulary:
        words: dict[str, str] = {}
        signs: dict[str, str] = {}
        classes: dict[str, str] = {}
        for t in terminals:
            text = t.pattern.value
            if t.name in ("NAME", "FLOAT", "INTEGER", "CONSTANT", "STRING"):
                classes[t.name] = text
                continue
            plain = t.pattern.type == "str"
            options = (
                [text]
                if plain
                else [re.sub(r"\\(.)", r"\1", o) for o in text.removeprefix("(?:").removesuffix(")").split("|")]
            )
            for o in options:
                (words if o.isalpha() else signs)[o] = t.name
        ordered = sorted(signs, key=lambda s: (-len(s), s))
        order = ("STRING", "FLOAT", "INTEGER", "CONSTANT", "NAME")
        pattern = "|".join(
            [r"(?P<SPACE>[ \t\r\f\v]+)", r"(?P<LINE>\n)", r"(?P<COMMENT>#[^\n]*)"]
            + [f"(?P<{name}>{classes[name]})" for name in order]
            + ["(?P<SIGN>" + "|".join(re.escape(s) for s in ordered) + ")", r'(?P<BAD_STRING>"[^\n]*)', r"(?P<BAD>.)"]
        )
        return cls(words, signs, re.compile(pattern))


class TokenLexer(Lexer):
    """The adapter that hands tokens of `tokenize` to lark's parser."""

    __future_interface__ = 2  # lark passes its state, which holds the argument of `parse`

    def __init__(self, lexer_conf: Any) -> None:
        """One lexer for each parser's configuration, as Lark makes them; the text to read comes with each parse."""

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Any]:
        return iter(lexer_state.text)


def check_text(text: str, file: str) -> None:
    """RuleLimitError for a text that is too long, RuleEncodingError for one with a NUL byte."""
    if len(text) > MAX_BYTES:
        raise RuleLimitError(
            f"the file has {len(text):,} characters",
            place=Place(file, 1),
            expected=f"at most {MAX_BYTES:,}",
            hint="split it into several files: one theme a file",
        )
    at = text.find("\0")
    if at >= 0:
        line = text.count("\n", 0, at) + 1
        raise RuleEncodingError(
            "the file holds a NUL byte",
            place=Place(file, line, at - text.rfind("\n", 0, at)),
            expected="UTF-8 text",
            hint="is it a text file?",
        )


OPEN: Final = {"(": ")", "[": "]", "{": "}"}
EXAMPLE_PART: Final = re.compile(r'[()\[\]{}]|~>|\n[ \t\r]*|#[^\n]*|"[^"\n]*"|[^\s()\[\]{}~#"]+|.', re.S)


def _example_end(text: str, start: int, indent: int) -> tuple[int, bool]:
    """The end of the raw text of an `example` that begins at `start`, and True if it is complete.

    It ends with its line once the arrow and a right side have been seen and no bracket is open; until then it goes on in
    lines that are indented deeper than the one it began in.
    """
    depth = 0
    arrow = after_arrow = False
    end = start
    for m in EXAMPLE_PART.finditer(text, start):
        part = m.group()
        if part[0] == "\n":
            if depth == 0 and after_arrow:
                break
            deeper = len(part) - 1 > indent
            blank = m.end() < len(text) and text[m.end()] == "\n"
            if not deeper and not blank:
                return end, False
            continue
        if part.isspace() or part[0] == "#":
            continue
        if part in OPEN:
            depth += 1
        elif part in ")]}":
            if depth == 0:
                break
            depth -= 1
        if part == "~>" and depth == 0 and not arrow:
            arrow = True
        elif arrow:
            after_arrow = True
        end = m.end()
    return end, depth == 0 and after_arrow


def tokenize(text: str, file: str, vocabulary: Vocabulary) -> tuple[list[Tok], list[Comment]]:
    """The tokens and the comments of `text`. What is beyond a limit is a token that no rule of the grammar takes: a bracket
    TOO_DEEP, the comma before an item TOO_MANY, a LONG_NUMBER, a LONG_NAME.
    """
    tokens: list[Tok] = []
    comments: list[Comment] = []
    words, signs, scan = vocabulary.words, vocabulary.signs, vocabulary.scanner.match
    line, line_start, first, pos = 1, 0, True, 0
    brackets = _Brackets()
    size = len(text)
    while pos < size:
        m = scan(text, pos)
        assert m is not None, "the last alternative takes any character"
        kind, start, pos = m.lastgroup, pos, m.end()
        assert kind is not None
        if kind == "SPACE":
            continue
        if kind == "LINE":
            line, line_start, first = line + 1, pos, True
            continue
        value = m.group()
        column = start - line_start + 1
        if kind == "COMMENT":
            comments.append(Comment(value, line, column, first))
            continue
        if kind == "NAME":
            kind = words.get(value, "NAME") if len(value) <= MAX_NAME else "LONG_NAME"
        elif kind == "SIGN":
            kind = brackets.read(value) or signs[value]
        elif kind in ("INTEGER", "FLOAT") and len(value) > MAX_DIGITS:
            kind = "LONG_NUMBER"
        token = Tok(kind, value, file, line, column, start, first)
        first = False
        tokens.append(token)
        if value == "example":
            pos = _take_example(token, text, line_start)
            comments += _comments(token, text)
            if token.end_line > line:
                line, line_start = token.end_line, text.rfind("\n", start, pos) + 1
    return tokens, comments


class _Brackets:
    """The brackets that are open, with how many items each has so far; 0 for braces, whose items are not counted."""

    def __init__(self) -> None:
        self.items: list[int] = []

    def read(self, sign: str) -> str:
        """The limit that a sign is beyond: "TOO_DEEP", "TOO_MANY", or none, ""."""
        if sign in OPEN:
            # fields are few, and a block holds rules, and what they name with `let`
            self.items.append(0 if sign == "{" else 1)
        elif sign in ("~>", "=>"):
            self.items.clear()  # an arrow stands in no bracket: one that is still open was forgotten
        elif self.items and sign in ")]}":
            self.items.pop()
        elif self.items and self.items[-1] and sign == ",":
            self.items[-1] += 1
        if len(self.items) > MAX_DEPTH:
            return "TOO_DEEP"
        return "TOO_MANY" if self.items and self.items[-1] > MAX_ITEMS else ""


def _take_example(token: Tok, text: str, line_start: int) -> int:
    """The position behind an example; its text becomes the value of the token `example` at its beginning."""
    start, begin = token.start_pos, token.end_pos
    before = text[line_start:start]
    end, whole = _example_end(text, begin, len(before) - len(before.lstrip()))
    token.type = "EXAMPLE" if whole else "BAD_EXAMPLE"
    token.value = text[begin:end]
    token.end_pos = end
    token.end_line += text.count("\n", start, end)
    token.end_column = end - max(line_start, text.rfind("\n", start, end) + 1) + 1
    return end


def _comments(example: Tok, text: str) -> Iterator[Comment]:
    """The comments in the lines of an example."""
    for m in EXAMPLE_PART.finditer(text, example.end_pos - len(example.value), example.end_pos):
        if m.group()[0] == "#":
            start = text.rfind("\n", 0, m.start()) + 1
            line = example.line + text.count("\n", example.start_pos, m.start())
            yield Comment(m.group(), line, m.start() - start + 1, not text[start : m.start()].strip())
