"""The ledger: which rules are proved.

A record holds for exactly one meaning of a rule: its text, the contracts of its helpers, the ops it uses and the prover
itself are hashed together. No solver is imported here.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from morok import atomic, cache_folder
from morok import dialect as dialects
from morok.dialect import Dialect
from morok.dsl.extent import Extent, Extents
from morok.errors import LedgerError, UnprovedRuleError
from morok.prove import contents, fingerprints, seal
from morok.prove import page as pages
from morok.prove.contents import Entry, rule_digest
from morok.prove.page import USABLE, Page, Record
from morok.prove.page import read as read_page
from morok.prove.page import write as write_page
from morok.rewrite import folders
from morok.rewrite.folders import page_path

if TYPE_CHECKING:  # a fresh process asks for a verdict by bytes, and should pay for nothing else
    from morok.dsl.checked import CheckedRule


def machine_folder() -> Path | None:
    """The folder where this machine remembers what it proved itself; None where there is none."""
    return cache_folder.part("proofs")


def keep_page(path: Path, page: Page) -> None:
    """Write a page of this machine's own. One that cannot remember a proof repeats it."""
    with contextlib.suppress(OSError):
        cache_folder.make(path.parent)
        write_page(path, page)


@functools.lru_cache(maxsize=256)
def _cached_page(path: Path, own: bool, *stamp: int) -> Page | None:
    try:
        return read_page(path)
    except LedgerError:
        if own:  # a cache: what is damaged in it is found out anew, and written in its place
            return None
        raise


def _page(path: Path, own: bool) -> Page | None:
    """The page at `path`; of one that is this machine's own, damage is no error."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return None if own else read_page(path)
    return _cached_page(path, own, status.st_mtime_ns, status.st_size, status.st_ino)


def page_at(path: Path) -> Page | None:
    """The page at `path`, if there is one; LedgerError for a damaged one that is not this machine's own."""
    folder = machine_folder()
    return _page(path, folder is not None and path.is_relative_to(folder))


def _pages(file: str | Path, trust_ledger: bool) -> Iterator[Page]:
    """The pages that may vouch for the rules of `file`: a pack's own ledger is evidence, and counts only when trusted."""
    return (p for _, p in _known_pages(file, trust_ledger) if p is not None)


def _known_pages(file: str | Path, trust_ledger: bool) -> Iterator[tuple[Path, Page | None]]:
    if folders.is_built_in(file) or trust_ledger:
        yield page_path(file), _page(page_path(file), False)
    own = machine_path(file)
    if own is not None:
        yield own, _page(own, True)


def machine_path(file: str | Path) -> Path | None:
    """The page of a rule file among this machine's own."""
    folder = machine_folder()
    return (
        None
        if folder is None
        else folder / f"{Path(file).stem}-{fingerprints.digest(str(Path(file).resolve()))[:16]}.json"
    )


def outdated(file: str | Path, committed: bool, own: bool) -> list[str]:
    """A sentence for each page about the rules of a file that has another format, and counts for nothing: for the page of the
    file's ledger, and for this machine's own, as far as these are read.
    """
    read = [page_path(file)] if committed else []
    read += filter(None, [machine_path(file)] if own else [])
    return [
        f"{path} has format {page.format}, and records are of format {pages.FORMAT} now"
        for path in read
        if (page := page_at(path)) is not None and page.format != pages.FORMAT
    ]


def vouched(file: str | Path, entries: Iterable[Entry], trust_ledger: bool = False) -> dict[str, Record] | None:
    """The records of exactly these rules by their own names; None unless each has a usable one."""
    known = list(_pages(file, trust_ledger))
    found: dict[str, Record] = {}
    for own, digest in entries:
        record = next((r for p in known if (r := p.find(own, digest)) is not None), None)
        if record is None or record.verdict not in USABLE:
            return None
        found[own] = record
    return found


def unchanged(
    file: str | Path, content: bytes, trust_ledger: bool = False, dialect: Dialect | None = None
) -> dict[str, Record] | None:
    """The records of the rules of a file of these bytes, by their own names: None unless it is known which rules these are, and
    each has a usable one. `dialect`: the one that its rules are of, where it is not the built-in one.

    The fast path: nothing is parsed and no digest of a rule computed.
    """
    sealed = _sealed_page(file, content)
    if sealed is not None:
        return dict(pages.parse(sealed[0], page_path(file)).records)
    entries = contents.recall(content, sources_of(content, dialect))
    return None if entries is None else vouched(file, entries, trust_ledger)


def sealed(file: str | Path, content: bytes) -> Mapping[str, Extents] | None:
    """The limits of the rules of a built-in file of these bytes, if it was compared with its page when the ledger was made.

    The page is parsed only where a rule has limits.
    """
    found = _sealed_page(file, content)
    if found is None:
        return None
    page, limited = found
    return declining(pages.parse(page, page_path(file)).records) if limited else {}


def _sealed_page(file: str | Path, content: bytes) -> tuple[bytes, bool] | None:
    """(the page with which a built-in file of these bytes was compared when the ledger was made, True if a rule has limits)"""
    inside = folders.inside(file)
    if inside is None:
        return None
    page = _page_bytes((folders.proofs_folder() / inside).with_suffix(".json"))
    if page is None:
        return None
    holding = (t for t in (False, True) if seal.holds(folders.proofs_folder(), inside, _seal_line(content, page, t)))
    limited = next(holding, None)
    return None if limited is None else (page, limited)


def _seal_line(content: bytes, page: bytes, limited: bool) -> str:
    return seal.line(content, page, fingerprints.digest(sources_of(content, None) + limited * " limited"))


_UNKNOWN: Final[Extents] = (Extent("unknown", "", 0, 0),)  # of a record that says `bounded`, and not by what


def declining(records: Mapping[str, Record]) -> dict[str, Extents]:
    """The limits of rules that decline beyond the extents of these records, by the rules' names."""
    return {name: found for name, r in records.items() if (found := limits_of(r))}


def limits_of(record: Record) -> Extents:
    """The extents beyond which the rule of one record declines; none where it always fires."""
    return record.extents or (_UNKNOWN if record.verdict == "bounded" else ())


def _page_bytes(path: Path) -> bytes | None:
    try:
        return atomic.read(path, pages.MAX_BYTES)
    except OSError:
        return None


def compared(
    file: str | Path, content: bytes, rules: Iterable[CheckedRule], trust_ledger: bool = False
) -> dict[str, Record] | None:
    """The same as `unchanged`, found out rule by rule, and remembered; `rules` are those of `content`."""
    mine = list(rules)
    try:
        entries = contents.of(mine)
    except UnprovedRuleError:  # one was measured in code that rules make which nothing vouches for any more
        return None
    remember(content, dict(entries), mine[0].dialect if mine else None)
    return vouched(file, entries, trust_ledger)


def remember(content: bytes, digests: Mapping[str, str], dialect: Dialect | None) -> None:
    """Remember that the rules of a file of these bytes, of this dialect, have these digests, by their own names."""
    contents.keep(content, sources_of(content, dialect), digests.items())


def seal_up(found: Mapping[str, tuple[bytes, Mapping[str, str]]]) -> None:
    """Seal those of these built-in files whose pages have a usable record of each rule, and of nothing else. A file is given with
    its bytes and its rules' digests by their own names.
    """
    lines = {
        f: line for f, line in seal.read(folders.proofs_folder()).items() if (folders.rules_folder() / f).is_file()
    }
    for file, (content, digests) in found.items():
        inside, page = folders.inside(file), _page_bytes(page_path(file))
        if inside is None or page is None:
            continue
        lines.pop(inside, None)
        records = pages.parse(page, page_path(file)).records
        if digests == {own: r.digest for own, r in records.items()}:
            lines[inside] = _seal_line(content, page, bool(declining(records)))
    seal.write(folders.proofs_folder(), lines)


def sources_of(content: bytes, dialect: Dialect | None) -> str:
    """A digest of all that the meaning of rules in a file of these bytes depends on besides: of the dialect that they are of, as
    it is now, whatever it is called and whoever has its name by now; of the compiler too, where rules may be measured in the code
    that they become. `dialect`: None for the built-in one, which is not loaded for it.
    """
    found = fingerprints.source_bytes() + ("" if dialect is None else dialect_digest(dialect))
    if b"within" in content:
        late = (folders.rules_folder() / "target" / "decompose.rules").read_bytes()
        found += fingerprints.compiler_bytes() + fingerprints.digest(late)
    return fingerprints.digest(found)


def dialect_digest(dialect: Dialect) -> str:
    """All that proofs about a foreign dialect may depend on, and what it says of itself; "" for the built-in one."""
    if dialects.built_in(dialect):
        return ""
    from morok.prove import sources  # lazy: rules of the built-in dialect are loaded without it

    return sources.whole_digest(dialect)


def recorded(rule: CheckedRule, trust_ledger: bool = False) -> Record | None:
    """The record of exactly this meaning of the rule, whatever its verdict and whatever the rule was called then."""
    known = list(_pages(rule.file, trust_ledger))
    if not known:
        return None
    try:
        wanted = rule_digest(rule)
    except UnprovedRuleError:  # it was measured in code that rules make which nothing vouches for any more
        return None
    return next((r for p in known if (r := p.find(rule.own, wanted)) is not None), None)


__all__ = [
    "USABLE", "Page", "Record", "compared", "declining", "keep_page", "limits_of",
    "machine_folder", "machine_path", "outdated", "page_at", "page_path", "read_page", "recorded", "remember", "rule_digest",
    "seal_up", "sealed", "sources_of", "unchanged", "vouched", "write_page",
]  # fmt: skip
