"""Rule files and the index of their groups and rules. The index is cached on disk, so an unchanged file is not parsed again."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from weakref import ReferenceType, ref

from morok import dialect as dialects
from morok.dialect import Dialect
from morok.errors import DialectError, Place, UnknownDialectError
from morok.names import data
from morok.rewrite import gate, store
from morok.rewrite.identity import ByIdentity
from morok.rewrite.parts import Standing, mentions

if TYPE_CHECKING:
    from morok.dsl.checked import CheckedFile, CheckedRule
    from morok.dsl.extent import Extents


class Entry(NamedTuple):
    """The index entry of a rule: its full name, its line, and the liberties that it takes (`assuming`)."""

    name: str
    line: int
    assuming: tuple[str, ...]


class GroupEntry(NamedTuple):
    name: str
    doc: str
    context: str | None
    rules: tuple[Entry, ...]


class Index(NamedTuple):
    """The index of a file: its groups and its dialect. Templates over ops depend on the dialect, so the index does too.

    digest  the digest of the dialect that the index was made for
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
                GroupEntry(
                    group, doc, context, tuple(Entry(name, line, tuple(assuming)) for name, line, assuming in rules)
                )
                for group, doc, context, rules in groups
            ),
        )


@lru_cache(maxsize=1)
def generator_digest() -> str:
    """A digest of the matcher generator: the sources of morok.dsl, the Python version and the machine, without the dialect."""
    digest = hashlib.sha256(importlib.util.MAGIC_NUMBER + f"{sys.version} {os.uname().machine}\0".encode())
    folder = Path(__file__).resolve().parent.parent / "dsl"
    for path in sorted([*folder.rglob("*.py"), *folder.glob("*.lark")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


_dialect_digests: dict[str, tuple[Dialect, str]] = {}


def dialect_digest(dialect: Dialect) -> str:
    """A digest of a dialect's ops, dtypes and code templates; for a foreign dialect also of its code, because matchers contain
    the constants that this code makes of numbers in rules.
    """
    if not dialects.built_in(dialect):
        return f"{_declarations_digest(dialect)} {gate.gate().dialect_digest(dialect)}"
    found = _dialect_digests.get(dialect.name)
    if found is None or found[0] is not dialect:
        found = _dialect_digests[dialect.name] = (dialect, _declarations_digest(dialect))
    return found[1]


def _declarations_digest(dialect: Dialect) -> str:
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
    declared = repr(
        (dialect.name, ops, list(dialect.dtypes), sorted(classes.items()), inline, sorted(dialect.facts), flags)
    )
    return hashlib.sha256(declared.encode()).hexdigest()


class RuleFile:
    """A rule file. Its content is read once, by the caller; its path serves messages and names.

    pack     the prefix of its rules' names; "" for built-in files
    dialect  the dialect that had the file's dialect name at the first look-up, even if the name is registered again later
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
            self._index = self._cached_index(key)
            if self._index is None:
                self._index = self._make_index()
                store.save(key, self._index.dump())
        return self._index

    def _cached_index(self, key: str) -> Index | None:
        """The index from the cache; None if there is none, or if the dialect has changed since."""
        kept = store.load(key)
        if kept is None:
            return None
        index = Index.load(kept)
        return index if index.digest == self._current_digest(index.dialect) else None

    def _current_digest(self, name: str) -> str | None:
        """The present digest of the file's dialect, of this name; None if no dialect has the name. It does not load the built-in
        dialect. A dialect is looked up once.
        """
        if name == dialects.BUILT_IN:
            return gate.gate().sources()
        if self._dialect is None:
            try:
                self._dialect = dialects.find(name)
            except UnknownDialectError:  # parsing raises it again, with the place
                return None
        return dialect_digest(self._dialect)

    def _make_index(self) -> Index:
        checked = self.checked
        groups = tuple(
            GroupEntry(g.name, g.doc, g.context, tuple(Entry(r.name, r.line, r.syntax.assuming) for r in g.rules))
            for g in checked.groups
        )
        return Index(checked.syntax.dialect, self._current_digest(checked.syntax.dialect) or "", groups)

    @property
    def checked(self) -> CheckedFile:
        """The parsed and checked file, kept until `forget_syntax`. RuleError with every mistake in the file."""
        found = self._checked
        if found is None:
            from morok.dsl.check import check_bytes  # lazy: loads the parser

            found = check_bytes(self.content, str(self.path), dialect=self._dialect, pack=self.pack)
            if self._dialect is None:
                first = next(found.rules(), None)
                self._dialect = dialects.find(found.syntax.dialect) if first is None else first.dialect
            self._checked = found
            # no Python runs when the file dies: an interrupt that arrived in a function of ours would be lost
            _parsed_files[id(self)] = ref(self, partial(_parsed_files.pop, id(self)))
        return found

    @property
    def dialect(self) -> Dialect:
        name = self.index.dialect
        if self._dialect is None:
            self._dialect = dialects.find(name)
        return self._dialect

    @property
    def foreign(self) -> Dialect | None:
        """The file's dialect; None for the built-in one, which this does not load."""
        return None if self.index.dialect == dialects.BUILT_IN else self.dialect

    def part(self, name: str) -> GroupPart:
        """The group of this name, as a part of a rule set."""
        return GroupPart(self, next(g for g in self.index.groups if g.name == name))

    def parts(self) -> list[GroupPart]:
        return [GroupPart(self, g) for g in self.index.groups if g.rules]


_parsed_files: dict[int, ReferenceType[RuleFile]] = {}  # by id; what this makes of a file does not keep it


def forget_syntax() -> None:
    """Drop the parser and the syntax trees of rule files. They are rarely needed once the matchers exist, and are made again on
    demand. After a start with cold caches they are most of the objects of the process.
    """
    if not _parsed_files:
        return
    from morok.dsl import grammar, helpers  # lazy: loads the parser

    for key in list(_parsed_files):
        kept = _parsed_files.pop(key, None)
        if kept is not None and (file := kept()) is not None:
            file._checked = None
    helpers.forget_outlines()
    grammar.forget()


class GroupPart:
    """A group of a rule file, as a part of a rule set. The file is parsed when the rules are first needed."""

    def __init__(self, file: RuleFile, entry: GroupEntry) -> None:
        self.file = file
        self.entry = entry
        self.standing = Standing.ASK
        self.limits: Mapping[int, Extents] = {}
        self.meant = ""

    @property
    def cache(self) -> str:
        key = f"{self.file.digest} {self.file.path} {self.file.pack} {self.entry.name}"
        if not self.limits:
            return key
        return f"{key} {hashlib.sha256(data(repr(sorted(self.limits.items())))).hexdigest()}"

    @property
    def identity(self) -> Hashable:
        return ("file", ByIdentity(self.dialect), self.cache, self.meant)

    @property
    def dialect(self) -> Dialect:
        return self.file.dialect

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(r.name for r in self.entry.rules)

    @property
    def has_context(self) -> bool:
        return self.entry.context is not None

    def admit(self, limits: Mapping[int, Extents]) -> None:
        """Let the rules fire within these limits, which are keyed by the rules' positions in the group."""
        self.limits = limits
        self.meant = "" if self.file.foreign is None else self.file.index.digest
        self.standing = Standing.ADMITTED

    def rules(self) -> Sequence[CheckedRule]:
        found = next(g for g in self.file.checked.groups if g.name == self.entry.name).rules
        if tuple(r.name for r in found) != self.names:  # positions would mean other rules
            what = f"group {self.entry.name} of {self.file.path} has other rules than when the file was loaded"
            hint = f"dialect {self.dialect.name} has changed; load the rules again with load_rules(..)"
            raise DialectError(what, place=Place(str(self.file.path), 1), hint=hint)
        return found

    def mentions(self, op: str) -> bool:
        text = self.file.content
        if data(op) not in text and b"[*]" not in text:
            return False  # without parsing
        return any(mentions(r, op) for r in self.rules())
