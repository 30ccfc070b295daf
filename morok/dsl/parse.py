"""Rule text to syntax trees, with every mistake of a file reported.

A file is parsed whole. Only when that fails is it cut into rules, group heads, `for` heads and externs, which are parsed one by
one: a line at its group's indentation that begins with `NAME :` starts a new rule, whatever brackets are open. If such a piece
does not parse, a line in it that begins like a rule without its name is a mistake of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from lark.exceptions import UnexpectedToken

from morok.dialect import BUILT_IN
from morok.dsl import syntax as S
from morok.dsl.file_bytes import decode, read_bytes
from morok.dsl.grammar import parser
from morok.dsl.lexer import MAX_DEPTH, MAX_DIGITS, MAX_ITEMS, MAX_NAME, Comment, Tok, Vocabulary, check_text, tokenize
from morok.dsl.syntax_builder import Mistake
from morok.errors import MorokError, Place, RuleError, RuleLimitError, RuleSyntaxError
from morok.names import did_you_mean, nearest

MAX_ERRORS: Final = 100


def vocabulary() -> Vocabulary:
    """The words and signs of the grammar, for `lexer.tokenize`."""
    return parser()[1]


class Parsed(NamedTuple):
    """The part of a file that parses, its comments, and the errors in the rest."""

    file: S.File
    comments: list[Comment]
    errors: list[MorokError]


@functools.lru_cache(maxsize=4)
def _lines(text: str) -> tuple[str, ...]:
    """The lines of a file, split once for all its mistakes."""
    return tuple(text.split("\n"))


def excerpt(text: str, line: int, column: int, width: int = 1) -> str:
    """The line, with carets under the mistake."""
    lines = _lines(text)
    if not 1 <= line <= len(lines):
        return ""
    source = lines[line - 1].rstrip("\r")
    start = max(0, column - 100)
    shown = source[start : start + 160].replace("\t", " ")
    width = max(1, min(width, len(shown) - (column - 1 - start)))
    return f"  {shown}\n  {' ' * (column - 1 - start)}{'^' * width}"


def suggest(name: str, known: Iterable[str]) -> str:
    """`did you mean ...?`, or nothing."""
    options = dict.fromkeys(known)
    close = nearest(name, options, 3)
    close += [o for o in options if o.lower() == name.lower() and o not in close]
    return did_you_mean(close[:3])


# Phrases for sets of accepted tokens, tried in order: (tokens that must all be accepted, tokens that the phrase covers, phrase).
_PHRASES: Final = (
    (
        {"NAME", "INTEGER", "CONSTANT", "LPAR"},
        {"NAME", "INTEGER", "FLOAT", "SPECIAL", "TRUTH", "CONSTANT", "LPAR", "MINUS"},
        "a pattern",
    ),
    (
        {"NAME", "INTEGER", "TILDE", "LPAR"},
        {"NAME", "INTEGER", "FLOAT", "SPECIAL", "TRUTH", "LPAR", "LSQB", "MINUS", "TILDE", "NOT", "NONE", "SOME"},
        "an expression",
    ),
    (
        {"PLUS", "STAR"},
        {"PLUS", "MINUS", "STAR", "PRODUCT", "SHIFT", "AMPERSAND", "BAR", "CARET", "COMPARE", "AND", "OR"},
        "an operator",
    ),
    ({"INTEGER", "FLOAT"}, {"INTEGER", "FLOAT", "SPECIAL"}, "a number"),
)
_WORDS: Final = {
    "NAME": "a name", "STRING": "a doc string", "EXAMPLE": "`example`", "CONSTANT": "a constant such as @zero",
    "INTEGER": "a number", "FLOAT": "a number", "SPECIAL": "a number", "TRUTH": "true or false",
    "COMPARE": "a comparison", "REST": "`..`", "BAR": "`|`",
    "PRODUCT": "`//`", "SHIFT": "`<<`", "AMPERSAND": "`&`", "CARET": "`^`", "$END": "the end of the file",
}  # fmt: skip


def _in_words(accepted: set[str], texts: dict[str, str]) -> str:
    left = set(accepted)
    said: list[str] = []
    for needed, covered, phrase in _PHRASES:
        if needed <= left:
            left -= covered
            said.append(phrase)
    order = {"~>": 0, "=>": 1, ")": 2, "]": 2, "}": 2, ",": 3}
    rest = {_WORDS.get(t) or f"`{texts.get(t, t.lower())}`" for t in left}
    said += sorted(rest, key=lambda w: (order.get(w.strip("`"), 9), w))
    said = said[:8]
    return said[0] if len(said) == 1 else ", ".join(said[:-1]) + f" or {said[-1]}" if said else ""


# What a token is beyond: the mistake, what is expected, a hint
_LIMITS: Final = {
    "TOO_DEEP": (
        f"brackets are nested more than {MAX_DEPTH} deep",
        f"at most {MAX_DEPTH} levels",
        "is a bracket never closed? Otherwise name parts of the rule with `let`",
    ),
    "TOO_MANY": (
        f"a list of more than {MAX_ITEMS} items",
        f"at most {MAX_ITEMS}",
        "is a bracket never closed? Otherwise write a sequence, `xs..`, or a comprehension",
    ),
    "LONG_NUMBER": ("a number of {:,} digits", f"at most {MAX_DIGITS}", ""),
    "LONG_NAME": ("a name of {:,} characters", f"at most {MAX_NAME}", ""),
}

_CLOSES: Final = {"(": ")", "[": "]", "{": "}"}


def _open_brackets(tokens: list[Tok], stop: Tok) -> list[Tok]:
    found: list[Tok] = []
    for t in tokens:
        if t is stop:
            break
        if t.value in _CLOSES and t.type != "STRING":
            found.append(t)
        elif found and t.value == _CLOSES[found[-1].value]:
            found.pop()
    return found


@dataclass(slots=True)
class _Parser:
    text: str
    path: str

    def error(
        self,
        message: str,
        at: Tok | S.Span,
        expected: str = "",
        hint: str = "",
        kind: type[RuleError] = RuleSyntaxError,
    ) -> RuleError:
        line, column = at.line, at.column
        width = at.end_column - column if at.end_line == line else 1
        return kind(
            message,
            place=Place(self.path, line, column),
            excerpt=excerpt(self.text, line, column, width),
            expected=expected,
            hint=hint,
        )

    def _unexpected(self, e: Any, tokens: list[Tok], start: str) -> RuleError:
        t: Tok = e.token
        words = vocabulary()
        if t.type == "BAD_STRING":
            return self.error(
                "this string is not closed",
                t,
                'a closing "',
                "a doc string stands on one line; several in a row are joined",
            )
        if t.type in _LIMITS:
            message, expected, hint = _LIMITS[t.type]
            return self.error(message.format(len(t.value)), t, expected, hint, RuleLimitError)
        if t.type == "BAD":
            return self.error(f"unexpected character {t.value!r}", t)
        if t.type == "BAD_EXAMPLE":
            return self.error(
                "this example is not whole",
                t,
                "example EXPR ~> EXPR, with all brackets closed",
                "an example goes on only in lines indented deeper than its first",
            )
        texts = {name: text for text, name in (*words.words.items(), *words.signs.items())}
        accepted: set[str] = e.interactive_parser.accepts() if e.interactive_parser else set(e.expected)
        expected = _in_words(accepted, texts)
        if start == "heads":  # the heads of a file end where its first group begins
            expected = expected.replace(_WORDS["$END"], "`group`")
        ended = t.type == "$END"
        opened = _open_brackets(tokens, t)
        if opened and (
            ended or t.value in ("~>", "=>", "within", "assuming", "example", "let", "group") or t.type == "EXAMPLE"
        ):
            at = opened[-1]
            return self.error(f"this `{at.value}` is never closed", at, f"`{_CLOSES[at.value]}`")
        if ended and start != "file":
            last = tokens[-1]
            return self.error(
                "the rule ends too early",
                replace(last.span, column=last.end_column, end_column=last.end_column + 1),
                expected,
            )
        hint = ""
        if t.type in words.words.values() and "NAME" in accepted:
            hint = f"`{t.value}` is a reserved word"
        elif t.value == "=":
            hint = "comparison is written =="
        elif t.value == "@" and "LPAR" in accepted:
            hint = "constants are @zero @one @true @false @const @vconst @anyconst"
        elif t.value == ":" and t.type == "COLON" and "COMMA" not in accepted:
            hint = "a dtype constraint belongs to a variable of the pattern: x: int"
        elif t.type == "NAME" and "NAME" not in accepted:
            hint = suggest(t.value, [w for w, n in words.words.items() if n in accepted])
        shown = t.value if len(t.value) <= 60 else f"{t.value[:60]}.."
        return self.error("the file ends too early" if ended else f"unexpected `{shown}`", t, expected, hint)

    def piece(self, tokens: list[Tok], start: str) -> Any:
        """The tree of tokens, parsed from one of the grammar's start rules; raises RuleError."""
        made, _ = parser()
        try:
            return made.parse(tokens, start=start)
        except UnexpectedToken as e:
            raise self._unexpected(e, tokens, start) from None
        except Mistake as e:
            raise self.error(e.message, e.span, e.expected, e.hint) from None

    def parse(self) -> Parsed:
        check_text(self.text, self.path)
        tokens, comments = tokenize(self.text, self.path, vocabulary())
        if not tokens:
            return Parsed(S.File(self.path, BUILT_IN, None, (), ()), comments, [])
        errors: list[MorokError] = []
        try:
            file: S.File = self.piece(tokens, "file")
        except RuleError as first:
            file = self._recover(tokens, errors)
            if not errors:  # each piece parses: the mistake is in how they are combined
                errors.append(first)
        file = replace(file, path=self.path)
        return Parsed(self._limit_depth(file, errors), comments, errors)

    def _limit_depth(self, file: S.File, errors: list[MorokError]) -> S.File:
        """The file without rules that nest deeper than MAX_DEPTH without brackets (`not not not ..`, `a + b + c + ..`)."""

        def keep(node: S.Rule | S.Extern) -> bool:
            if not _too_deep(node):
                return True
            errors.append(
                self.error(
                    f"`{node.name}` is nested more than {MAX_DEPTH} deep",
                    node.span,
                    f"at most {MAX_DEPTH} levels",
                    "name parts of it with `let`",
                    RuleLimitError,
                )
            )
            return False

        groups = []
        for g in file.groups:
            items: list[S.Rule | S.Template] = []
            for i in g.items:
                if isinstance(i, S.Template):
                    rules = tuple(r for r in i.rules if keep(r))
                    items.append(i if len(rules) == len(i.rules) else replace(i, rules=rules))
                elif keep(i):
                    items.append(i)
            groups.append(g if len(items) == len(g.items) else replace(g, items=tuple(items)))
        externs = tuple(e for e in file.externs if keep(e))
        return replace(file, groups=tuple(groups), externs=externs)

    def _intact(self, piece: _Piece, errors: list[MorokError]) -> Any:
        """The tree of a piece; if it does not parse, of its part before a rule without a name; None if that does not either."""
        try:
            return self.piece(piece.tokens, piece.kind)
        except RuleError as e:
            errors.append(e)
            at = (e.place.line, e.place.column) if e.place else (0, 0)
        begun = [i for i, t in enumerate(piece.tokens) if i and (t.line, t.column) <= at and piece.begins_another(t)]
        if not begun:
            return None
        try:
            return self.piece(piece.tokens[: begun[-1]], piece.kind)
        except RuleError:
            return None

    def _recover(self, tokens: list[Tok], errors: list[MorokError]) -> S.File:
        """The file as far as it parses; each piece that does not adds one error."""
        dialect, helpers = BUILT_IN, None
        externs: list[S.Extern] = []
        groups: list[S.Group] = []
        head: S.Group | None = None
        items: list[S.Rule | S.Template] = []
        template: tuple[S.Template | None, list[S.Rule]] | None = None

        def close_group() -> None:
            nonlocal head
            close_template()
            if head is not None:
                groups.append(replace(head, items=tuple(items)))
            items.clear()
            head = None

        def close_template() -> None:
            nonlocal template
            if template is not None and template[0] is not None:
                items.append(replace(template[0], rules=tuple(template[1])))
            template = None

        for piece in _Cutter(tokens).pieces():
            if piece.kind == "close":
                if template is None:
                    errors.append(self.error("unexpected `}`", piece.tokens[0], hint="no `for` block is open here"))
                close_template()
                continue
            if piece.kind == "unclosed":
                errors.append(self.error("this `{` is never closed", piece.tokens[-1], "`}`"))
                close_template()
                continue
            made = self._intact(piece, errors)
            if piece.kind == "heads" and made is not None:
                dialect, helpers = made.dialect, made.helpers
            elif piece.kind == "heads" and any(t.value == "dialect" for t in piece.tokens):
                dialect = ""  # unknown, so that no rule is checked
            elif piece.kind == "group_head":
                close_group()
                head = made if made is not None else _named(piece.tokens)
            elif piece.kind == "template_head":
                template = (made, [])
            elif piece.kind == "extern" and made is not None:
                externs.append(made)
            elif piece.kind == "rules":
                if head is None and not any(e.place and e.place.line <= piece.tokens[0].line for e in errors):
                    errors.append(
                        self.error(
                            "this rule stands in no group",
                            piece.tokens[0],
                            hint='write `group NAME "what it does"` above it',
                        )
                    )
                for r in made or ():
                    (items if template is None else template[1]).append(r)
        close_group()
        return S.File(self.path, dialect, helpers, tuple(externs), tuple(groups))


def _named(head: list[Tok]) -> S.Group:
    """A group in place of a head that does not parse, with its name if the head has one."""
    name = head[1].value if len(head) > 1 and head[1].type == "NAME" else ""
    return S.Group(name, "", None, (), span=head[0].span)


def _too_deep(root: S.Syntax) -> bool:
    span = root.span
    if span.end_line == span.line and span.end_column - span.column < MAX_DEPTH:
        return False  # too short to be deep
    level = [root]
    for _ in range(MAX_DEPTH + MAX_DEPTH // 2):
        level = [c for n in level for c in S.children(n)]
        if not level:
            return False
    return True


class _Piece(NamedTuple):
    kind: str  # a start of the grammar, or "close" for the `}` of a `for` block, or "unclosed" when that is missing
    tokens: list[Tok]

    def begins_another(self, t: Tok) -> bool:
        """True if a pattern begins at `t`, the first token of a line that is indented no deeper than the piece."""
        return t.first and t.column <= self.tokens[0].column and t.type in _PHRASES[0][1]


class _Cutter:
    """A splitter of a file's tokens, at the lines that begin a piece, regardless of open brackets."""

    def __init__(self, tokens: list[Tok]) -> None:
        self.tokens = tokens
        self.kind = "heads"  # of the piece being collected; "start" where a `for` block has just been opened or closed
        self.piece: list[Tok] = []
        self.head: Tok | None = None  # the first token of that piece
        self.indent: int | None = None  # of the rules of the open group
        self.template: list[Tok] | None = None  # the head of the open `for` block
        self.inner: int | None = None  # the indentation of the rules in it

    def begins(self, i: int) -> str | None:
        """The kind of piece that token `i` begins, if it begins one."""
        t = self.tokens[i]
        if not t.first and self.kind != "start":
            return None
        if t.value == "group":
            return "group_head"
        if t.value == "for" and [self.tokens[k].value for k in (i + 2, i + 4) if k < len(self.tokens)] == ["in", "["]:
            return "template_head"
        if t.value == "extern":
            return "extern"
        if t.type != "NAME" or i + 1 >= len(self.tokens) or self.tokens[i + 1].value != ":":
            return None
        if self.kind == "extern" and self.head is not None and t.column > self.head.column:
            return None  # a parameter
        if self.template is not None:
            if self.inner is None:
                self.inner = t.column
            return "rules" if t.column <= self.inner else None
        if self.indent is None:
            self.indent = t.column
        return "rules" if t.column <= self.indent or self.kind == "start" else None

    def left(self, kind: str, t: Tok) -> bool:
        """True if the open `for` block must have ended before `t`, which begins a piece of that kind."""
        if self.template is None:
            return False
        if kind in ("group_head", "template_head"):
            return True
        column = self.template[0].column
        return kind == "rules" and t.first and t.column <= column and self.inner is not None and self.inner > column

    def flush(self) -> Iterator[_Piece]:
        if self.piece:
            yield _Piece(self.kind, self.piece)
        self.piece = []

    def pieces(self) -> Iterator[_Piece]:
        braces = 0
        for i, t in enumerate(self.tokens):
            kind = self.begins(i)
            if kind is not None:
                yield from self.flush()
                if self.left(kind, t) and self.template is not None:
                    yield _Piece("unclosed", self.template)
                    self.template, self.inner = None, None
                if kind == "group_head":
                    self.indent = None
                elif kind == "template_head" and self.indent is None:
                    self.indent = t.column
                self.kind, self.piece, self.head, braces = kind, [t], t, 0
            elif t.type == "RBRACE" and braces == 0 and self.template is not None:
                yield from self.flush()
                yield _Piece("close", [t])
                self.kind, self.template, self.inner = "start", None, None
            elif self.kind == "template_head" and t.type == "LBRACE":
                self.template = [*self.piece, t]
                yield _Piece(self.kind, self.template)
                self.kind, self.piece, self.inner, braces = "start", [], None, 0
            else:
                if self.kind == "start":
                    self.kind = "rules"
                self.piece.append(t)
                braces = max(0, braces + (t.type == "LBRACE") - (t.type == "RBRACE"))
        yield from self.flush()
        if self.template is not None:
            yield _Piece("unclosed", self.template)


def recover(text: str, file: str = "<text>") -> Parsed:
    """The part of `text` that parses, and the mistakes; RuleLimitError or RuleEncodingError if the text cannot be read."""
    parsed = _Parser(text, file).parse()
    parsed.errors.sort(key=lambda e: (e.place.line, e.place.column) if e.place else (0, 0))
    return parsed


def raise_all(errors: list[MorokError]) -> None:
    """Raise one RuleError with all of `errors`, if there are any; a single one is raised as itself."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        shown = tuple(errors[:MAX_ERRORS])
        more = f" (the first {MAX_ERRORS} are shown)" if len(errors) > MAX_ERRORS else ""
        raise RuleError(f"{len(errors)} mistakes{more}", errors=shown, place=errors[0].place)


def parse_text(text: str, file: str = "<text>") -> S.File:
    """The syntax tree of rule text. Raises a RuleError that holds every mistake (`errors`)."""
    parsed = recover(text, file)
    raise_all(parsed.errors)
    return parsed.file


def read(path: str | Path) -> str:
    """The text of a rule file; errors as `read_bytes` and `decode`."""
    return decode(read_bytes(path), str(path))


def parse_file(path: str | Path) -> S.File:
    """The syntax tree of a rule file; errors as `read` and `parse_text`."""
    return parse_text(read(path), str(path))
