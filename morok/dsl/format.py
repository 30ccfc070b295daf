"""The canonical layout of rule files.

A rule with at most one clause, and no helper that may decline, stands on one line where it fits, its doc string on the next;
else its clauses and its target have a line each. A part too long for its line is broken from the outside in (see
`layout.py`): at operators, which begin a line, and at the arrow of an `example`; at `for` and `if` of a comprehension; in
brackets, where operands and fields have a line each. The text of comments does not change.

Comments keep their places: one on a line of its own stays above the same part, one behind a part stays behind it.
Blank lines between rules are kept, as one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from morok.dialect import BUILT_IN
from morok.dsl import syntax as S
from morok.dsl import syntax_text as X
from morok.dsl.layout import WIDTH, Brackets, Doc, broken, flat
from morok.dsl.lexer import Comment, Tok, tokenize
from morok.dsl.parse import raise_all, recover, vocabulary

_INDENT: Final = "    "
Key = tuple[int, str]


class _Line(NamedTuple):
    """A line of output; `key` names the part of the tree it ends, for comments."""

    text: str
    key: Key | None = None


@dataclass(slots=True)
class _Notes:
    """The comments above and behind each part of the tree, and the parts that had a blank line above them."""

    above: dict[Key, list[tuple[str, bool]]] = field(default_factory=dict)
    behind: dict[Key, str] = field(default_factory=dict)
    blank: set[Key] = field(default_factory=set)


def format_text(text: str, file: str = "<text>") -> str:
    """Rule text in the canonical layout. Raises a RuleError, with every mistake, where the text does not parse."""
    parsed = recover(text, file)
    raise_all(parsed.errors)
    tokens, _ = tokenize(text, file, vocabulary())
    return _Printer(_attach(parsed.file, tokens, parsed.comments, text)).file(parsed.file)


def format_file(file: S.File) -> str:
    """A syntax tree as text in the canonical layout (also a checked one)."""
    return _Printer(_Notes()).file(file)


def format_rule(rule: S.Rule, doc: bool = False) -> str:
    """The canonical text of one rule: without comments and examples, and without its doc string unless asked for."""
    lines = [line.text for line in _Printer(_Notes()).rule(rule, "")]
    keep = len(lines) - len(rule.examples) - (0 if doc else len(doc_lines(rule.doc, _INDENT)))
    return "\n".join(lines[:keep] if not doc else lines[: len(lines) - len(rule.examples)])


def doc_lines(doc: str, indent: str) -> list[str]:
    """A doc string, in several pieces where it is long; the parser joins them with single blanks."""
    if not doc:
        return []
    pieces = [""]
    for n, word in enumerate(doc.split(" ")):
        longer = f"{pieces[-1]} {word}" if n else word
        if pieces[-1].strip() and len(indent + X.quote(longer)) > WIDTH:
            pieces.append(word)
        else:
            pieces[-1] = longer
    return [indent + X.quote(p) for p in pieces]


# Where comments belong


def _attach(file: S.File, tokens: list[Tok], comments: list[Comment], text: str) -> _Notes:
    anchors = sorted(_anchors(file, tokens))
    places = [(line, column) for line, column, _ in anchors]
    lines = text.split("\n")

    def after_blank(line: int) -> bool:
        return line >= 2 and not lines[line - 2].strip()

    notes = _Notes()
    for line, _, key in anchors:
        if after_blank(line):
            notes.blank.add(key)
    # The first comments of a file stay at its top, even if helpers declared further down are printed first.
    first = anchors[0][0] if anchors else 0
    head = 0
    if file.externs and anchors[0][2][1] == "head" and anchors[0][2][0] != id(file.externs[0]):
        while head < len(comments) and comments[head].line == head + 1 < first:
            notes.above.setdefault((0, "top"), []).append((comments[head].text.rstrip(), False))
            head += 1
    for c in comments[head:]:
        at = bisect_right(places, (c.line, c.column))
        if c.own_line or at == 0:
            key = anchors[at][2] if at < len(anchors) else (0, "end")
            notes.above.setdefault(key, []).append((c.text.rstrip(), after_blank(c.line)))
            continue
        key = anchors[at - 1][2]
        earlier = notes.behind.get(key)
        if earlier is not None:
            notes.above.setdefault(key, []).append((earlier, False))
        notes.behind[key] = c.text.rstrip()
    return notes


def _anchors(file: S.File, tokens: list[Tok]) -> Iterator[tuple[int, int, Key]]:
    """(line, column, part) of everything that is printed on lines of its own."""
    for t in tokens:
        if t.type in ("DIALECT", "HELPERS"):
            yield t.line, t.column, (0, t.value)
    spots = _Spots(file, tokens)
    for e in file.externs:
        yield from spots.extern(e)
    for g in file.groups:
        yield *spots.keyword(g), (id(g), "head")
        for i in g.items:
            yield from spots.rule(i) if isinstance(i, S.Rule) else spots.template(i)


Spot = tuple[int, int]  # line, column


def _spot(node: S.Syntax) -> Spot:
    return node.span.line, node.span.column


class _Spots:
    """The places of a file's parts among its tokens.

    ends  the places where externs, groups, templates and rules begin, sorted: each is the end of the item before it
    """

    def __init__(self, file: S.File, tokens: list[Tok]) -> None:
        self.tokens = tokens
        self.strings = [(t.line, t.column) for t in tokens if t.type == "STRING"]
        self.braces = [(t.line, t.column) for t in tokens if t.type == "RBRACE"]
        self.starts = {(t.line, t.column): i for i, t in enumerate(tokens)}
        ends = [self.keyword(e) for e in (*file.externs, *file.groups)]
        for i in (item for g in file.groups for item in g.items):
            ends += [self.keyword(i), *map(_spot, i.rules)] if isinstance(i, S.Template) else [_spot(i)]
        self.ends = sorted([*ends, (len(tokens) and tokens[-1].end_line + 1, 0)])

    def keyword(self, node: S.Syntax) -> Spot:
        """The place of the keyword before a node, whose span begins at its name."""
        t = self.tokens[self.starts[_spot(node)] - 1]
        return t.line, t.column

    def within(self, spots: list[Spot], begin: Spot, part: Spot) -> list[Spot]:
        """The spots after `begin`, and before the end of the item that holds `part`."""
        end = self.ends[bisect_right(self.ends, part)]
        return [s for s in spots if begin < s < end]

    def extern(self, e: S.Extern) -> Iterator[tuple[int, int, Key]]:
        place = self.keyword(e)
        yield *place, (id(e), "head")
        for n, c in enumerate((*e.requires, *e.ensures)):
            yield *_spot(c), (id(e), f"contract {n}")
        docs = self.within(self.strings, place, place)
        if docs and e.doc:
            yield *docs[0], (id(e), "doc")

    def rule(self, r: S.Rule) -> Iterator[tuple[int, int, Key]]:
        yield *_spot(r), (id(r), "head")
        for n, c in enumerate(r.clauses):
            if not (n and isinstance(c, S.Let) and isinstance(r.clauses[n - 1], S.Let)):
                yield *_spot(c), (id(r), f"clause {n}")
        target = _spot(r.target if r.target.span != S.NOWHERE else r)
        yield *target, (id(r), "target")
        docs = self.within(self.strings, target, _spot(r))
        if docs and r.doc:
            yield *docs[0], (id(r), "doc")
        for n, e in enumerate(r.examples):
            yield *_spot(e), (id(r), f"example {n}")

    def template(self, t: S.Template) -> Iterator[tuple[int, int, Key]]:
        place = self.keyword(t)
        yield *place, (id(t), "head")
        for r in t.rules:
            yield from self.rule(r)
        last = _spot(t.rules[-1]) if t.rules else place
        closing = self.within(self.braces, last, last)
        if closing:
            yield *closing[-1], (id(t), "close")


# Printing


class _Printer:
    def __init__(self, notes: _Notes) -> None:
        self.notes = notes
        self.lines: list[str] = []

    def blank(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def comments(self, key: Key, indent: str, blanks: bool) -> None:
        for text, after_blank in self.notes.above.get(key, ()):
            if after_blank and blanks:
                self.blank()
            self.lines.append(indent + text)

    def put(self, text: str, key: Key | None) -> None:
        behind = self.notes.behind.get(key) if key is not None else None
        self.lines += text.split("\n")
        if behind is not None:
            self.lines[-1] += f"  {behind}"

    def item(self, key: Key, indent: str) -> None:
        """Print the comments above an item, and a blank line if there was one."""
        self.comments(key, indent, True)
        if key in self.notes.blank:
            self.blank()

    def file(self, file: S.File) -> str:
        self.comments((0, "top"), "", False)
        if file.dialect != BUILT_IN or (0, "dialect") in self.notes.blank or (0, "dialect") in self.notes.above:
            self.item((0, "dialect"), "")
            self.put(f"dialect {file.dialect}", (0, "dialect"))
        if file.helpers is not None:
            self.item((0, "helpers"), "")
            self.put(f"helpers {X.quote(file.helpers)}", (0, "helpers"))
        for e in file.externs:
            self.blank()
            self.extern(e)
        for g in file.groups:
            self.blank()
            self.group(g)
        self.comments((0, "end"), "", True)
        while self.lines and not self.lines[-1]:
            self.lines.pop()
        return "\n".join(self.lines) + "\n" if self.lines else ""

    def extern(self, e: S.Extern) -> None:
        key = (id(e), "head")
        self.item(key, "")
        self.put(broken(X.signature_doc(e), 0, 0), key)
        words = ["requires"] * len(e.requires) + ["ensures"] * len(e.ensures)
        for n, (word, c) in enumerate(zip(words, (*e.requires, *e.ensures), strict=True)):
            part = (id(e), f"contract {n}")
            self.comments(part, _INDENT, False)
            self.put(_line(X.beside(f"{word} ", X.expr_doc(c)), _INDENT), part)
        self.doc(e.doc, _INDENT, (id(e), "doc"))

    def doc(self, doc: str, indent: str, key: Key) -> None:
        self.comments(key, indent, False)
        lines = doc_lines(doc, indent)
        for n, line in enumerate(lines):
            self.put(line, key if n == len(lines) - 1 else None)

    def group(self, g: S.Group) -> None:
        key = (id(g), "head")
        self.item(key, "")
        head = f"group {g.name}"
        docs = doc_lines(g.doc, _INDENT)
        if len(docs) == 1 and len(head) + 1 + len(docs[0].strip()) <= WIDTH:
            head += f" {docs[0].strip()}"
            docs = []
        self.put(head, key)
        self.lines += docs
        if g.context is not None:
            self.lines.append(f"@context {g.context};")
        for e in g.ends:
            self.ends(e)
        self.blank()
        for i in g.items:
            if isinstance(i, S.Rule):
                self.item((id(i), "head"), "")
                self.rule_lines(i, "")
            else:
                self.template(i)

    def ends(self, e: S.Ends) -> None:
        head = broken(Brackets("@ends", (X.chain(X.separated(e.names), step=0),), "", pad=" "), 0, len(_INDENT))
        docs = doc_lines(e.reason, _INDENT)
        if "\n" not in head and len(docs) == 1 and len(head) + 1 + len(docs[0].strip()) <= WIDTH:
            head += f" {docs[0].strip()}"
            docs = []
        self.lines += [*head.split("\n"), *docs]

    def template(self, t: S.Template) -> None:
        key = (id(t), "head")
        self.item(key, "")
        head = X.listed(f"for {t.variable} in {t.kind} [", t.ops or ("*",), "] {")
        self.put(broken(head, 0, len(_INDENT)), key)
        for n, r in enumerate(t.rules):
            self.comments((id(r), "head"), _INDENT, n > 0)
            if n and (id(r), "head") in self.notes.blank:
                self.blank()
            self.rule_lines(r, _INDENT)
        self.comments((id(t), "close"), _INDENT, False)
        self.put("}", (id(t), "close"))

    def rule_lines(self, r: S.Rule, indent: str) -> None:
        for line in self.rule(r, indent):
            if line.key is not None and line.key != (id(r), "head"):
                self.comments(line.key, indent + _INDENT, False)
            self.put(line.text, line.key)

    def rule(self, r: S.Rule, indent: str) -> Iterator[_Line]:
        """The lines of a rule without its comments, which the caller puts above the line of their part."""
        inner = indent + _INDENT
        clauses = X.clause_docs(r.clauses)
        keys = [
            (id(r), f"clause {n}")
            for n, c in enumerate(r.clauses)
            if not (n and isinstance(c, S.Let) and isinstance(r.clauses[n - 1], S.Let))
        ]
        pattern = X.beside(f"{r.name}: ", X.pattern_doc(r.pattern))
        target = X.target_doc(r)
        whole = indent + " ".join(map(flat, (pattern, *clauses, target)))
        head, last = (id(r), "head"), (id(r), "target")
        inside = any(k in self.notes.behind for k in (head, *keys)) or any(k in self.notes.above for k in (*keys, last))
        if len(whole) <= WIDTH and len(clauses) <= 1 and not (clauses and r.partial) and not inside:
            yield _Line(whole, last)
        else:
            yield _Line(indent + broken(pattern, len(indent), len(inner)), head)
            for doc, key in zip((*clauses, target), (*keys, last), strict=True):
                yield _Line(_line(doc, inner), key)
        lines = doc_lines(r.doc, inner)
        for n, text in enumerate(lines):
            yield _Line(text, (id(r), "doc") if n == len(lines) - 1 else None)
        for n, e in enumerate(r.examples):
            yield _Line(_line(X.example_doc(e), inner), (id(r), f"example {n}"))


def _line(doc: Doc, indent: str) -> str:
    """The text of a part of a rule that begins a line."""
    return indent + broken(doc, len(indent), len(indent))
