"""Obligations as SMT-LIB: for each rule what the solver was asked and refuted, one file a rule.

They are made when somebody wants them; the ledger keeps a digest of each rule's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from morok import atomic
from morok.errors import UsageError
from morok.prove.fingerprints import digest
from morok.prove.verdict import Verdict

_NAMED: Final = re.compile(r"(?m)^; (.*)\n\(reset\)\n")

Obligation = tuple[str, str]  # its name, and SMT-LIB whose answer was `unsat`


def digest_of(obligations: Sequence[Obligation]) -> str:
    """A name for exactly these questions, whatever their rule is called; "" where none was asked."""
    return digest("\n".join(text.strip() for _, text in obligations)) if obligations else ""


def script(obligations: Sequence[Obligation]) -> str:
    """The obligations as one script."""
    return "".join(f"; {name}\n(reset)\n{text}\n" for name, text in obligations)


def parsed(text: str) -> tuple[Obligation, ...]:
    """The obligations that a script is of."""
    parts = _NAMED.split(text)
    return tuple((name, body) for name, body in zip(parts[1::2], parts[2::2], strict=True))


def write(folder: Path, verdicts: Iterable[Verdict]) -> None:
    """One SMT-LIB file a rule; every question in it was answered `unsat`."""
    folder.mkdir(parents=True, exist_ok=True)
    for v in verdicts:
        file = folder / f"{v.name}.smt2"
        with atomic.naming(file):
            file.write_text(script(v.obligations), encoding="utf-8")


def read(folder: Path) -> dict[str, tuple[Obligation, ...]]:
    """The obligations in such a folder, by the names of their rules."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", expected="a folder that `morok prove --smt2` has written")
    return {
        file.name.removesuffix(".smt2"): parsed(file.read_text(encoding="utf-8"))
        for file in sorted(folder.glob("*.smt2"))
    }
