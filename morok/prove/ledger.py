"""The ledger: which rules are proved, and the gate that every pipeline passes them through.

A record holds for exactly one meaning of a rule: its text, the contracts of its helpers, the ops it uses and the prover
itself are hashed together. No solver is imported here.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from morok import config
from morok import dialect as dialects
from morok.errors import LedgerError, Place, UnprovedRuleError, VacuousRuleError
from morok.names import readable
from morok.prove import stamp

if TYPE_CHECKING:  # a fresh process asks for a verdict by bytes, and should pay for nothing else
    from morok.dsl.checked import CheckedRule

USABLE: Final = frozenset({"proved", "bounded", "approximate", "defined"})
_PACKAGE: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Record:
    """One verdict, as the ledger keeps it.

    name        the rule's own, without its pack's: whoever loads the file names the pack
    digest      of the rule's meaning
    scope       what the proof covers, in words
    resources   what the solver counted, summed over the obligations
    questions   a digest of the obligations: `morok recheck` makes them again, and compares
    """

    name: str
    digest: str
    verdict: str
    scope: tuple[str, ...] = ()
    solver: str = ""
    resources: int = 0
    helpers: tuple[str, ...] = ()
    message: str = ""
    line: int = 0
    questions: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """The records of one rule file, with the bytes they were made from."""

    file: str
    bytes: str
    sources: str
    records: Mapping[str, Record] = field(default_factory=dict)

    def dump(self) -> str:
        rules = [asdict(r) for r in self.records.values()]
        head = json.dumps({"file": self.file, "bytes": self.bytes, "sources": self.sources})[1:-1]
        lines = ",\n  ".join(json.dumps(r) for r in rules)
        return f'{{{head}, "rules": [\n  {lines}\n]}}\n'

    @staticmethod
    def load(text: str) -> Page:
        data = json.loads(text)
        found = (Record(**{**r, "scope": tuple(r["scope"]), "helpers": tuple(r["helpers"])}) for r in data["rules"])
        records = {r.name: r for r in found}
        return Page(data["file"], data["bytes"], data["sources"], records)


def rules_folder() -> Path:
    """The built-in rule files: inside the package when installed, beside it in a checkout."""
    inside = _PACKAGE / "data" / "rules"
    return inside if inside.is_dir() else _PACKAGE.parent / "rules"


def proofs_folder() -> Path:
    inside = _PACKAGE / "data" / "proofs"
    return inside if inside.is_dir() else _PACKAGE.parent / "proofs"


def is_built_in(file: str | Path) -> bool:
    return Path(file).resolve().is_relative_to(rules_folder().resolve())


def page_path(file: str | Path) -> Path:
    """Where the page of a rule file is: the built-in ledger, or the folder `proofs` beside a pack's file."""
    path = Path(file).resolve()
    if is_built_in(path):
        return (proofs_folder() / path.relative_to(rules_folder().resolve())).with_suffix(".json")
    return path.parent / "proofs" / (path.stem + ".json")


def pack_of(where: str | Path) -> str:
    """What stands in front of the names of rules that come from this file or folder; "" for the built-in ones."""
    return "" if is_built_in(where) else readable(Path(where).resolve().stem)


def machine_folder() -> Path:
    """Where this machine remembers what it proved itself."""
    return config.cache_dir() / "proofs"


def read_page(path: Path) -> Page | None:
    """The page at `path`; None if there is none. LedgerError if it is no page."""
    try:
        return Page.load(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise LedgerError(
            f"{path} is no ledger page: {problem}", place=Place(str(path), 1), hint="remove it and prove again"
        ) from None


def write_page(path: Path, page: Page) -> None:
    """Write a page whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    scratch.write_text(page.dump(), encoding="utf-8")
    scratch.replace(path)


def rule_digest(rule: CheckedRule) -> str:
    """A name for exactly this meaning of a rule (morok.prove.digest)."""
    from morok.prove import digest

    return digest.rule_digest(rule)


# The gate


@functools.lru_cache(maxsize=256)
def _cached_page(path: Path, stamp: int) -> Page | None:
    return read_page(path)


def _page(path: Path) -> Page | None:
    try:
        return _cached_page(path, path.stat().st_mtime_ns)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _pages(file: str, trust_ledger: bool) -> list[Page]:
    """The pages that may vouch for the rules of `file`: a pack's own ledger is evidence, and counts only when trusted."""
    found = [_machine_page(file)]
    if is_built_in(file) or trust_ledger:
        found.insert(0, _page(page_path(file)))
    return [p for p in found if p is not None]


def machine_path(file: str) -> Path:
    return machine_folder() / f"{Path(file).stem}-{stamp.digest(str(Path(file).resolve()))[:16]}.json"


def _machine_page(file: str) -> Page | None:
    return _page(machine_path(file))


def sources_of(records: Mapping[str, Record], content: bytes = b"") -> str:
    """A digest of all that these verdicts depend on besides the rules: of the compiler too, where any was measured, and of the
    foreign dialects whose names are in the file.
    """
    found = stamp.source_bytes() + foreign_sources(content)
    if all(r.verdict != "approximate" for r in records.values()):
        return found if len(found) == 32 else stamp.digest(found)
    late = (rules_folder() / "target" / "decompose.rules").read_bytes()
    return stamp.digest(found + stamp.compiler_bytes() + stamp.digest(late))


def foreign_sources(content: bytes) -> str:
    """A digest of all that proofs in this rule file may depend on and that is not Morok's; "" for the built-in dialect."""
    others = [d for d in dialects.registered() if d.name != "morok" and d.name.encode("utf-8", "replace") in content]
    if not others:
        return ""
    from morok.prove import sources  # lazy: rules of the built-in dialect are loaded without it

    return stamp.digest("".join(sources.whole_digest(d) for d in others))


def unchanged(file: str | Path, content: bytes, trust_ledger: bool = False) -> dict[str, Record] | None:
    """The records of a rule file whose bytes, and whose prover's, are those that were proved; None when anything changed.

    The fast path: nothing is parsed and no digest of a rule computed. Every record is usable, else None.
    """
    read = stamp.digest(content)
    for page in _pages(str(file), trust_ledger):
        current = page.bytes == read and page.sources == sources_of(page.records, content)
        if current and page.records and all(r.verdict in USABLE for r in page.records.values()):
            return dict(page.records)
    return None


def recorded(rule: CheckedRule, trust_ledger: bool = False) -> Record | None:
    """The record of exactly this meaning of the rule, whatever its verdict and whatever the rule was called then."""
    pages = _pages(rule.file, trust_ledger)
    if not pages:
        return None
    try:
        wanted = rule_digest(rule)
    except UnprovedRuleError:  # it was measured in code that rules make which nothing vouches for any more
        return None
    for page in pages:
        found = page.records.get(rule.own)
        if found is None or found.digest != wanted:
            found = next((r for r in page.records.values() if r.digest == wanted), None)
        if found is not None:
            return found
    return None


def admit(rules: Iterable[CheckedRule], *, prove: bool = False, trust_ledger: bool = False) -> None:
    """Let these rules pass, or raise UnprovedRuleError with the first that may not.

    prove         prove on the spot what no ledger vouches for, and remember it on this machine
    trust_ledger  let a pack's own ledger vouch for it
    """
    missing: list[tuple[CheckedRule, Record | None]] = []
    for rule in rules:
        record = recorded(rule, trust_ledger)
        if record is None or record.verdict not in USABLE:
            missing.append((rule, record))
    if missing and prove:
        from morok.prove.api import prove as prove_now

        unproved = [r for r, record in missing if record is None]
        verdicts = {v.name: v for v in prove_now(unproved, remember=True, contracts=False)} if unproved else {}
        missing = [(r, known or verdicts[r.name].record(rule_digest(r), r.own)) for r, known in missing]
        missing = [(r, known) for r, known in missing if known is None or known.verdict not in USABLE]
    if missing:
        _refuse(missing)


def _refuse(missing: Sequence[tuple[CheckedRule, Record | None]]) -> None:
    rule, record = missing[0]
    why = "no proof of its present text is recorded" if record is None else f"its verdict is {record.verdict}"
    more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
    kind = VacuousRuleError if record is not None and record.verdict == "inapplicable" else UnprovedRuleError
    raise kind(
        f"rule {rule.name} is not proved: {why}{more}" + (f"\n  {record.message}" if record and record.message else ""),
        place=Place(rule.file, rule.line),
        expected="a rule whose verdict is proved, bounded, approximate or defined",
        hint=f"run `morok prove --write {rule.file}`" if record is None else f"`morok prove {rule.file}` says why; mend the rule",
    )
