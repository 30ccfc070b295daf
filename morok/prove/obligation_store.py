"""The obligations behind the ledger, beside it as SMT-LIB (`.smt2.xz`): for each rule what the solver was asked and refuted.

A file is a section a rule, in the rules' order, each headed by the rule's name and the digest of the meaning that was proved, so
that a section is known to be of the present rule, or not.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from morok.errors import LedgerError, Place
from morok.prove.verdict import Verdict

PRESET: Final = 3  # a tenth larger than the best of presets, in a tenth of its time
_HEAD: Final = re.compile(r"^; rule (\S+) (\S+)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """What was asked for one rule of this digest, as a script: every question in it was answered `unsat`."""

    digest: str
    script: str


def path_of(page: Path) -> Path:
    """Where the obligations of a ledger page are."""
    return page.with_suffix(".smt2.xz")


def script(v: Verdict) -> str:
    return "".join(f"; {name}\n(reset)\n{text}\n" for name, text in v.obligations)


def read(path: Path) -> dict[str, Section]:
    """The sections of a file by rule; none if there is no such file. LedgerError if it is damaged."""
    try:
        text = lzma.decompress(path.read_bytes()).decode()
    except FileNotFoundError:
        return {}
    except (lzma.LZMAError, UnicodeDecodeError) as problem:
        raise LedgerError(
            f"{path} holds no obligations: {problem}", place=Place(str(path), 1), hint="remove it and prove again"
        ) from None
    parts = _HEAD.split(text)
    return {name: Section(digest, body) for name, digest, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)}


def write(path: Path, sections: Mapping[str, Section]) -> None:
    """Write the file anew, unless it says this already."""
    if path.exists() and read(path) == sections:
        return
    text = "".join(f"; rule {name} {s.digest}\n{s.script}" for name, s in sections.items())
    path.write_bytes(lzma.compress(text.encode(), preset=PRESET))
