"""The catalogue of the reference texts' rules: for each of them the library's rules that state it, or the reason for none.

`rules/catalogue.toml` has the decisions, the ledger the verdicts; `proofs/catalogue.md` is generated from both.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from morok import atomic
from morok.errors import LedgerError, Place

SOURCE: Final = "catalogue.toml"
PAGE: Final = "catalogue.md"
# Keys of an entry, which has at most one of them; without, its rules state the text unchanged.
DECISIONS: Final = ("repaired", "replaced", "rejected", "open")


@dataclass(frozen=True, slots=True)
class Entry:
    """One rule of the reference texts.

    text      its wording there
    rules     the names of the library's rules for it; the name of a `for` block means all rules that it generates
    decision  "stated" (unchanged), "repaired", "replaced", "rejected" or "open"
    reason    the reason for another decision than "stated"
    code      the function, `module:name`, of an algorithm in place of rules
    """

    id: str
    section: str
    text: str
    rules: tuple[str, ...]
    decision: str
    reason: str
    code: str


def entries(rules: Path) -> list[Entry]:
    """The entries of the folder's catalogue.toml, in order. LedgerError for an entry without a decision."""
    path = rules / SOURCE
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as problem:
        raise LedgerError(f"the catalogue cannot be read: {problem}", place=Place(str(path), 1)) from None
    return [_entry(path, section, id, row) for section, rows in document.items() for id, row in rows.items()]


def _entry(path: Path, section: str, id: str, row: Mapping[str, Any]) -> Entry:
    unknown = sorted(row.keys() - {*DECISIONS, "text", "rules", "code"})
    made = [key for key in DECISIONS if key in row]
    found = Entry(
        id,
        section,
        row.get("text", ""),
        tuple(row.get("rules", "").split()),
        made[0] if made else "stated",
        str(row[made[0]]) if made and made[0] != "open" else "",
        row.get("code", ""),
    )
    needs_rules = found.decision in ("stated", "repaired")
    if unknown or len(made) > 1 or not found.text or (needs_rules and not (found.rules or found.code)):
        raise LedgerError(
            f"the catalogue's entry {id} has no valid decision"
            + (f": unknown {', '.join(unknown)}" if unknown else ""),
            place=Place(str(path), 1),
            expected=f"text, and rules or code, or one of {', '.join(DECISIONS)}",
        )
    return found


def answers(name: str, wanted: str) -> bool:
    """True if `wanted` is the rule's name, or the name of the `for` block that generated it."""
    return name == wanted or name.startswith(wanted + ".")


def verdicts(entry: Entry, known: Mapping[str, str]) -> list[str]:
    """The distinct verdicts of an entry's rules; `known` maps names of rules to verdicts. LedgerError if a rule is missing."""
    found: dict[str, None] = {}
    for wanted in entry.rules:
        made = [verdict for name, verdict in known.items() if answers(name, wanted)]
        if not made:
            raise LedgerError(f"the catalogue's entry {entry.id} names the rule {wanted}, which does not exist")
        found |= dict.fromkeys(made)
    return list(found)


def page(rules: Path, known: Mapping[str, str]) -> str:
    """The page with the table of entries, as Markdown."""
    return "\n".join(_lines(entries(rules), known)) + "\n"


def _lines(all_entries: list[Entry], known: Mapping[str, str]) -> Iterator[str]:
    counts = Counter(entry.decision for entry in all_entries)
    yield "# What became of the texts' rules"
    yield ""
    yield "Made by `morok prove --write` from `rules/catalogue.toml` and the ledger: do not edit. A rule of the texts is *stated*"
    yield "as it stands, *repaired* where it is false as it stands, *replaced* by something stronger, or *rejected*."
    yield ""
    yield f"{len(all_entries)} rules: " + ", ".join(f"{n} {decision}" for decision, n in sorted(counts.items())) + "."
    section = ""
    for entry in all_entries:
        if entry.section != section:
            section = entry.section
            yield from (
                "",
                f"## {section}",
                "",
                "| id | the text's rule | decision | rules | verdict | reason |",
                "|---|---|---|---|---|---|",
            )
        does = [f"`{name}`" for name in entry.rules] + ([f"`{entry.code}`"] if entry.code else [])
        verdict = ", ".join(verdicts(entry, known)) or ("algorithm" if entry.code else "")
        cells = (entry.id, f"`{entry.text}`", entry.decision, "<br>".join(does), verdict, entry.reason)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def write(rules: Path, proofs: Path, known: Mapping[str, str]) -> None:
    """Write the page beside the ledger, if it has changed."""
    path = proofs / PAGE
    text = page(rules, known)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        atomic.write(path, text.encode())
