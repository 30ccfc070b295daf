"""The record of measurements, beside the ledger page of the rule file: worst errors, where, over how much, of which code."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from morok import atomic
from morok.errors import LedgerError, Place
from morok.prove import fingerprints
from morok.rewrite import folders

if TYPE_CHECKING:
    from morok.dsl.checked import CheckedRule

MAX_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Worst:
    """The largest error found, in ulp, and the bit patterns of the operands that it is at."""

    ulp: float
    at: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One rule at one dtype.

    code        a digest of the LLVM IR that the rule becomes: another rule text, or another code generator, gives another
    count       operands (pairs, of an op of two) measured
    everything  these are all there are
    worst       by build: "contracted" (a * b + c rounded once), "separate"
    compiler    the compiler and the machine that it compiled for
    """

    rule: str
    dtype: str
    code: str
    count: int
    everything: bool
    worst: dict[str, Worst]
    compiler: str


def path_of(file: str | Path) -> Path:
    """The file that keeps the measurements of a rule file's rules."""
    page = folders.page_path(file)
    return page.with_name(f"{page.stem}.measured.json")


@functools.lru_cache(maxsize=16)
def _read(path: Path, stamp: int) -> dict[tuple[str, str], Measurement]:
    try:
        rows = json.loads(atomic.read(path, MAX_BYTES).decode())
        made = [_measurement(r) for r in rows]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise LedgerError(
            f"{path} holds no measurements: {problem}", place=Place(str(path), 1), hint="remove it and measure again"
        ) from None
    return {(m.rule, m.dtype): m for m in made}


def read(file: str | Path) -> dict[tuple[str, str], Measurement]:
    """The measurements of a rule file's rules, by rule and dtype."""
    path = path_of(file)
    return dict(_read(path, path.stat().st_mtime_ns)) if path.is_file() else {}


def find(rule: CheckedRule, dtype: str) -> Measurement | None:
    """The recorded measurement of a rule at a dtype, of whatever code."""
    return read(rule.file).get((rule.own, dtype))


def write(file: str | Path, found: Iterable[Measurement], known: Iterable[str]) -> None:
    """Put measurements into the record, in the place of older ones, but for those of the same code over more operands; rules that
    are not `known` any more leave it.
    """
    rows = read(file)
    for m in found:
        old = rows.get((m.rule, m.dtype))
        if old is None or old.code != m.code or old.count <= m.count:
            rows[m.rule, m.dtype] = m
    names = list(known)
    kept = sorted((m for m in rows.values() if m.rule in names), key=lambda m: (names.index(m.rule), m.dtype))
    lines = ",\n ".join(json.dumps(_row(m)) for m in kept)
    path = path_of(file)
    atomic.write(path, (f"[\n {lines}\n]\n" if kept else "[]\n").encode())


def _measurement(row: dict[str, Any]) -> Measurement:
    """The measurement of a row; ValueError where it is not as it was written."""
    if row.pop("check") != _check(row):
        raise ValueError(f"the row of {row['rule']} at {row['dtype']} is not what was written")
    return Measurement(**{**row, "worst": {b: Worst(w["ulp"], tuple(w["at"])) for b, w in row["worst"].items()}})


def _check(row: dict[str, Any]) -> str:
    return fingerprints.digest(json.dumps(row))[:16]


def _row(m: Measurement) -> dict[str, object]:
    row = {
        "rule": m.rule,
        "dtype": m.dtype,
        "code": m.code,
        "count": m.count,
        "everything": m.everything,
        "worst": {b: {"ulp": round(w.ulp, 6), "at": list(w.at)} for b, w in m.worst.items()},
        "compiler": m.compiler,
    }
    return {**row, "check": _check(row)}
