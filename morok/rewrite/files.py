"""Rule files seen from outside: which groups and rules they hold, without parsing a file that was parsed before."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from morok import dialect as dialects
from morok.dialect import Dialect
from morok.errors import DialectError, Place, UnknownDialectError
from morok.names import data
from morok.rewrite import gate, store
from morok.rewrite.identity import Same
from morok.rewrite.parts import Standing, mentions

if TYPE_CHECKING:
    from morok.dsl.checked import CheckedFile, CheckedRule
    from morok.dsl.extent import Limits


class Entry(NamedTuple):
    """One rule: its full name, where it stands, which liberties it takes (`assuming`)."""

    name: str
    line: int
    assuming: tuple[str, ...]


class GroupEntry(NamedTuple):
    name: str
    doc: str
    context: str | None
    rules: tuple[Entry, ...]


class Index(NamedTuple):
    """The groups of a file, and its dialect: over the ops of another, templates are other rules.

    digest  of the dialect
    """

    dialect: str
    digest: str
    groups: tuple[GroupEntry, ...]

    def dump(self) -> bytes:
        return json.dumps(self).encode()

    @staticmethod
    def load(text: bytes) -> Index:
        dialect, digest, groups = json.loads(text)
        return Index(
            dialect,
            digest,
            tuple(
                GroupEntry(group, doc, context, tuple(Entry(name, line, tuple(assuming)) for name, line, assuming in rules))
                for group, doc, context, rules in groups
            ),
        )


@lru_cache(maxsize=1)
def generator_digest() -> str:
    """A digest of the generator of matchers, without the dialect: the sources of morok.dsl, the interpreter and the machine."""
    digest = hashlib.sha256(importlib.util.MAGIC_NUMBER + f"{sys.version} {os.uname().machine}\0".encode())
    folder = Path(__file__).resolve().parent.parent / "dsl"
    for path in sorted([*folder.rglob("*.py"), *folder.glob("*.lark")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


_dialect_digests: dict[str, tuple[Dialect, str]] = {}


def dialect_digest(dialect: Dialect) -> str:
    """A digest of a dialect's ops and dtypes, of its code templates, and of the code of a foreign one: the constants it makes of
    the numbers in rules are part of matchers.
    """
    if not dialects.built_in(dialect):
        return f"{_said_digest(dialect)} {gate.gate().dialect_digest(dialect)}"
    found = _dialect_digests.get(dialect.name)
    if found is None or found[0] is not dialect:
        found = _dialect_digests[dialect.name] = (dialect, _said_digest(dialect))
    return found[1]


def _said_digest(dialect: Dialect) -> str:
    ops = [
        (
            o.name,
            o.operands,
            o.fields,
            o.params,
            o.result,
            sorted(o.domains.items()),
            o.kind,
            o.commutative,
            o.comparison,
            o.types,
            sorted(o.field_kinds.items()),
            o.dtype_given,
        )
        for o in dialect.ops.values()
    ]
    classes = {k: sorted(v) for k, v in dialect.classes.items()}
    flags = [bool(getattr(dialect, f, False)) for f in ("hash_consed", "closed_types")]
    inline = sorted(dialect.inline.items())
    said = repr((dialect.name, ops, list(dialect.dtypes), sorted(classes.items()), inline, sorted(dialect.facts), flags))
    return hashlib.sha256(said.encode()).hexdigest()


class RuleFile:
    """A rule file as it was read, which is once: its path only says where. `pack` is put in front of its rules' names; "" for
    the built-in ones. Its dialect is the one that had the name when it was first asked for, whatever is registered later.
    """

    def __init__(self, path: Path, content: bytes, pack: str) -> None:
        self.path = path
        self.content = content
        self.pack = pack
        self.digest = hashlib.sha256(content).hexdigest()
        self._index: Index | None = None
        self._dialect: Dialect | None = None
        self._checked: CheckedFile | None = None

    @property
    def index(self) -> Index:
        if self._index is None:
            key = hashlib.sha256(data(f"index {generator_digest()} {self.digest} {self.path} {self.pack}")).hexdigest()
            self._index = self._kept_index(key)
            if self._index is None:
                self._index = self._make_index()
                store.save(key, self._index.dump())
        return self._index

    def _kept_index(self, key: str) -> Index | None:
        """The index that was made before; None where there is none, or the dialect is not what it was."""
        kept = store.load(key)
        if kept is None:
            return None
        index = Index.load(kept)
        return index if index.digest == self._digest_now(index.dialect) else None

    def _digest_now(self, name: str) -> str | None:
        """The digest of its dialect, which has this name and is looked up no more; None where there is none. The built-in one is
        not loaded for it.
        """
        if name == dialects.BUILT_IN:
            return gate.gate().sources()
        if self._dialect is None:
            try:
                self._dialect = dialects.find(name)
            except UnknownDialectError:  # parsing says where
                return None
        return dialect_digest(self._dialect)

    def _make_index(self) -> Index:
        checked = self.checked
        groups = tuple(
            GroupEntry(g.name, g.doc, g.context, tuple(Entry(r.name, r.line, r.syntax.assuming) for r in g.rules))
            for g in checked.groups
        )
        return Index(checked.syntax.dialect, self._digest_now(checked.syntax.dialect) or "", groups)

    @property
    def checked(self) -> CheckedFile:
        """Parsed and checked; RuleError with every mistake in it. It is kept until `forget_syntax`."""
        found = self._checked
        if found is None:
            from morok.dsl.check import check_bytes  # lazy: loads the parser

            found = check_bytes(self.content, str(self.path), dialect=self._dialect, pack=self.pack)
            if self._dialect is None:
                first = next(found.rules(), None)
                self._dialect = dialects.find(found.syntax.dialect) if first is None else first.dialect
            self._checked = found
            _parsed.append(self)
        return found

    @property
    def dialect(self) -> Dialect:
        name = self.index.dialect
        if self._dialect is None:
            self._dialect = dialects.find(name)
        return self._dialect

    @property
    def foreign(self) -> Dialect | None:
        """Its dialect; None for the built-in one, which is not loaded for it."""
        return None if self.index.dialect == dialects.BUILT_IN else self.dialect

    def part(self, name: str) -> GroupPart:
        """The group of that name, as a part of a rule set."""
        return GroupPart(self, next(g for g in self.index.groups if g.name == name))

    def parts(self) -> list[GroupPart]:
        return [GroupPart(self, g) for g in self.index.groups if g.rules]


_parsed: list[RuleFile] = []


def forget_syntax() -> None:
    """Let go of what rule files were parsed into, and of the parser: once the matchers are made, hardly anybody asks for them,
    and then both are made again. With cold caches they are most objects of a process.
    """
    if not _parsed:
        return
    from morok.dsl import grammar, helpers  # lazy: loads the parser

    done = _parsed[:]
    del _parsed[: len(done)]
    for file in done:
        file._checked = None
    helpers.forget_outlines()
    grammar.forget()


class GroupPart:
    """A group of a rule file, as a part of a rule set: parsed when its rules are asked for."""

    def __init__(self, file: RuleFile, entry: GroupEntry) -> None:
        self.file = file
        self.entry = entry
        self.standing = Standing.ASK
        self.limits: Mapping[int, Limits] = {}

    @property
    def cache(self) -> str:
        said = f"{self.file.digest} {self.file.path} {self.file.pack} {self.entry.name}"
        if not self.limits:
            return said
        return f"{said} {hashlib.sha256(data(repr(sorted(self.limits.items())))).hexdigest()}"

    @property
    def identity(self) -> Hashable:
        return ("file", Same(self.dialect), self.cache)

    @property
    def dialect(self) -> Dialect:
        return self.file.dialect

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(r.name for r in self.entry.rules)

    @property
    def has_context(self) -> bool:
        return self.entry.context is not None

    def admit(self, limits: Mapping[int, Limits]) -> None:
        """Let its rules fire, within these limits, by their places."""
        self.limits = limits
        self.standing = Standing.ADMITTED

    def rules(self) -> Sequence[CheckedRule]:
        found = next(g for g in self.file.checked.groups if g.name == self.entry.name).rules
        if tuple(r.name for r in found) != self.names:  # then places are other rules'
            what = f"the rules of group {self.entry.name} are others than when {self.file.path} was loaded"
            hint = f"the dialect {self.dialect.name} has changed: load the rules again"
            raise DialectError(what, place=Place(str(self.file.path), 1), hint=hint)
        return found

    def mentions(self, op: str) -> bool:
        text = self.file.content
        if op.encode() not in text and b"[*]" not in text:
            return False  # and nothing is parsed
        return any(mentions(r, op) for r in self.rules())
