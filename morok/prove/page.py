"""Pages of the ledger: for each rule of a file the verdict, and a digest of exactly what was judged.

A record counts for the rule of that digest, whatever else the page holds or the rule's file says; so a page says nothing of the
file but its name. A record begins with a line that only names its rule, so that changes of neighbouring rules merge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from morok import atomic
from morok.dsl.extent import Extent, Extents
from morok.errors import LedgerError, Place
from morok.prove import fingerprints

FORMAT: Final = 4
MAX_BYTES: Final = 16 << 20
USABLE: Final = frozenset({"proved", "bounded", "approximate", "defined"})


@dataclass(frozen=True, slots=True)
class Record:
    """One verdict, as the ledger keeps it.

    name        the rule's own, without its pack's: whoever loads the file names the pack
    digest      of the rule's meaning
    scope       what the proof covers, in words
    resources   what the solver counted, summed over the obligations
    questions   a digest of the obligations: `morok recheck` makes them again, and compares
    extents     of everything that the proof enumerated the values that it tried
    """

    name: str
    digest: str
    verdict: str
    scope: tuple[str, ...] = ()
    solver: str = ""
    resources: int = 0
    helpers: tuple[str, ...] = ()
    message: str = ""
    questions: str = ""
    extents: Extents = ()

    def dump(self) -> str:
        """The record as text: a line for the name, a line for the rest."""
        row = asdict(self)
        rest = {name: value for name, value in row.items() if name != "name"} | {"check": _check(row)}
        return f'{{"name": {json.dumps(self.name)},\n {json.dumps(rest)[1:]}'

    @staticmethod
    def load(row: Any) -> Record:
        """A record as it was dumped; ValueError for anything else."""
        if not isinstance(row, dict):
            raise ValueError(f"a record is a {type(row).__name__}")
        row = dict(row)
        check = row.pop("check", None)
        if row.keys() != _FIELDS.keys():
            strange = sorted(map(str, row.keys() ^ _FIELDS.keys()))
            raise ValueError(f"a record with, or without, {', '.join(strange)[:200]}")
        for name, fits in _FIELDS.items():
            if not fits(row[name]):
                raise ValueError(f"{name} is {json.dumps(row[name])[:80]}")
        if check != _check(row):
            raise ValueError(f"the record of {row['name'][:80]} is not what was written")
        extents = tuple(map(Extent.load, row["extents"]))
        return Record(**{**row, "scope": tuple(row["scope"]), "helpers": tuple(row["helpers"]), "extents": extents})


def _check(row: Mapping[str, Any]) -> str:
    """A checksum: records are changed by proving, not by hand or by chance."""
    return fingerprints.digest(json.dumps([row[name] for name in _FIELDS]))[:16]


def _text(most: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is str and len(value) <= most


def _texts(most: int, each: int) -> Callable[[Any], bool]:
    one = _text(each)
    return lambda value: type(value) in (list, tuple) and len(value) <= most and all(map(one, value))


def _extent(row: Any) -> bool:
    try:
        return Extent.load(row).least >= 0
    except (ValueError, TypeError):
        return False


_HEX: Final = re.compile(r"[0-9a-f]{32}")
_FIELDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "name": _text(1_000),
    "digest": lambda value: type(value) is str and _HEX.fullmatch(value) is not None,
    "verdict": lambda value: type(value) is str and value in USABLE,
    "scope": _texts(1_000, 1_000_000),
    "solver": _text(1_000),
    "resources": lambda value: type(value) is int and 0 <= value < 1 << 63,
    "helpers": _texts(1_000, 1_000),
    "message": _text(1_000_000),
    "questions": _text(100),
    "extents": lambda value: type(value) in (list, tuple) and len(value) <= 1_000 and all(map(_extent, value)),
}


@dataclass(frozen=True, slots=True)
class Page:
    """The records of one rule file, by the rules' own names. `format`: of another than FORMAT no record is read."""

    file: str
    records: Mapping[str, Record] = field(default_factory=dict)
    format: int = FORMAT

    def find(self, own: str, digest: str) -> Record | None:
        """The record of the rule of this digest, whatever it was called."""
        found = self.records.get(own)
        if found is not None and found.digest == digest:
            return found
        return next((r for r in self.records.values() if r.digest == digest), None)

    def dump(self) -> str:
        head = json.dumps({"format": FORMAT, "file": self.file})[1:-1]
        lines = ",\n".join(r.dump() for r in self.records.values())
        return f'{{{head}, "rules": [\n{lines}\n]}}\n'

    @staticmethod
    def load(text: str) -> Page:
        """A page as it was dumped; ValueError for anything else, with what is wrong."""
        try:
            data = json.loads(text)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        if (
            not isinstance(data, dict)
            or not isinstance(data.get("file"), str)
            or not isinstance(data.get("rules"), list)
        ):
            raise ValueError("it has no file and no list of rules")
        written = data.get("format", 1)
        if type(written) is not int:
            raise ValueError(f"its format is {json.dumps(written)[:80]}")
        if written != FORMAT:
            return Page(data["file"], {}, written)
        return Page(data["file"], {r.name: r for r in map(Record.load, data["rules"])})


def parse(content: bytes, path: Path) -> Page:
    """The page of these bytes, read from `path`. LedgerError where they are none."""
    try:
        if len(content) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
        return Page.load(content.decode("utf-8"))
    except ValueError as problem:
        raise LedgerError(
            f"{path} is no ledger page: {problem}", place=Place(str(path), 1), hint="remove it and prove again"
        ) from None


def read(path: Path) -> Page | None:
    """The page at `path`; None if there is none. LedgerError if it is no page."""
    try:
        return parse(atomic.read(path, MAX_BYTES), path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise LedgerError(
            f"{path} is no ledger page: {problem}", place=Place(str(path), 1), hint="remove it and prove again"
        ) from None


def write(path: Path, page: Page) -> None:
    """Write a page whole, or not at all."""
    atomic.write(path, page.dump().encode())
    atomic.sweep(path)
