"""The record of measurements, beside the ledger page of the rule file: worst errors and their operands, for a digest of code."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from morok import atomic
from morok.dsl.checked import CheckedRule
from morok.errors import LedgerError, Place
from morok.prove import fingerprints
from morok.rewrite import folders

MAX_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Worst:
    """The largest error found, in ulp, and the bit patterns of its operands."""

    ulp: float
    at: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurement of one rule at one dtype.

    code        a digest of the rule's LLVM IR: it changes with the rule's text and with the code generator
    count       the number of operands (for an op of two: pairs) measured
    everything  True if these are all operands of the dtype
    worst       by build: "contracted" (a * b + c rounded once), "separate"
    compiler    the compiler and its target CPU
    """

    rule: str
    dtype: str
    code: str
    count: int
    everything: bool
    worst: dict[str, Worst]
    compiler: str


def path_of(file: str | Path) -> Path:
    """The path of the record for a rule file."""
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
    """The recorded measurements of a rule file, by (rule, dtype); LedgerError for a damaged record."""
    path = path_of(file)
    return dict(_read(path, path.stat().st_mtime_ns)) if path.is_file() else {}


def find(rule: CheckedRule, dtype: str) -> Measurement | None:
    """The recorded measurement of a rule at a dtype, even of older code; None without one."""
    return read(rule.file).get((rule.own, dtype))


def write(file: str | Path, found: Iterable[Measurement], known: Iterable[str]) -> None:
    """Replace measurements in the record, except those of the same code over more operands; rules that are not `known` are
    removed.
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
    """The measurement in a row; ValueError if its checksum is wrong."""
    if row.pop("check") != _check(row):
        raise ValueError(f"the row of {row['rule']} at {row['dtype']} has a wrong checksum")
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
