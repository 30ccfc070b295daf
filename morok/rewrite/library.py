"""The rules there are: the built-in groups, rule packs, and the gate that both pass: no rule runs unproved."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from morok.arguments import choice, flag, instance, text
from morok.arguments import path as path_of
from morok.caller import caller
from morok.dialect import Node
from morok.dsl.file_bytes import read_bytes
from morok.errors import DuplicateRuleError, Place, RuleError, UnknownNameError, UnprovedRuleError, UsageError
from morok.locks import RULES
from morok.names import nearest, readable
from morok.out_of_memory import needs_memory
from morok.rewrite import engine, folders, gate
from morok.rewrite.files import GroupPart, RuleFile
from morok.rewrite.parts import Part, placed
from morok.rewrite.ruleset import RuleSet, check_context, check_node
from morok.rewrite.tiers import FIRES, FIRES_IN, SYMBOLIC_SIMPLE, TIERS, WHOLE
from morok.rewrite.trace import Trace


@cache
def rules_dir() -> Path:
    """The folder of the built-in rule files, in a checkout or a wheel."""
    return folders.rules_folder()


@cache
def proofs_dir() -> Path:
    """The folder of the built-in ledger."""
    return folders.proofs_folder()


_HEADS: Final = re.compile(rb"^group[ \t]+([A-Za-z_][A-Za-z0-9_]*)", re.MULTILINE)
_homes: dict[Path, dict[str, Path]] = {}
_files: dict[Path, _Built] = {}
_sets: dict[tuple[Path, tuple[str, ...]], RuleSet] = {}


def _group_homes() -> dict[str, Path]:
    """The file of each built-in group; the files are searched for their group lines only."""
    folder = rules_dir()
    homes = _homes.get(folder)
    if homes is None:
        homes = {}
        for path in sorted(folder.rglob("*.rules")):
            for m in _HEADS.finditer(path.read_bytes()):
                name = m.group(1).decode()
                if name in homes:
                    raise DuplicateRuleError(f"the rule group {name} is in {homes[name]} already", place=Place(str(path), 1))
                homes[name] = path
        _homes[folder] = homes
    return homes


def _home_of(group_name: str) -> Path:
    found = _group_homes().get(group_name)
    if found is None:
        near = nearest(group_name, _group_homes(), 2)
        hint = f"did you mean {' or '.join(near)}?" if near else "`morok rules` lists them"
        raise UnknownNameError(f"there is no built-in rule group {group_name!r}", place=caller(), hint=hint)
    return found


_page_path: Final = cache(folders.page_path)  # finding it costs more than looking at both files

Stamp = tuple[int, int, int]  # of a rule file and of its page of the ledger: what the gate's answer depends on


def _stamp(path: Path) -> Stamp:
    status = path.stat()
    page = _page_path(path)
    return status.st_mtime_ns, status.st_size, page.stat().st_mtime_ns if page.is_file() else 0


class _Built:
    """A built-in file, and the gate's answers about its groups.

    limits    of its rules by name, where all are as they were proved: nothing need be parsed. None where that is not known
    compared  the file has been compared with its page rule by rule, if that was necessary
    """

    def __init__(self, path: Path, stamp: Stamp) -> None:
        self.stamp = stamp
        self.file = RuleFile(path, path.read_bytes(), "")
        self.limits = gate.gate().unchanged(self.file)
        self.compared = self.limits is not None
        self.refused: dict[str, UnprovedRuleError] = {}
        self.parts: dict[str, GroupPart] = {}

    def part(self, name: str) -> GroupPart:
        """A group whose rules may run; UnprovedRuleError otherwise."""
        if name in self.refused:
            raise self.refused[name].with_traceback(None)
        part = self.parts.get(name)
        if part is None:
            part = self.file.part(name)
            if not self.compared:
                self.compared = True  # once: what is measured asks for groups in turn
                self.limits = gate.gate().compared(self.file)
            if self.limits is not None:
                part.admit(placed(part.names, self.limits))
            else:
                try:
                    part.admit(gate.gate().admit(part.rules()))
                except UnprovedRuleError as refusal:
                    self.refused[name] = refusal
                    raise
            self.parts[name] = part
        return part


def _built_in(path: Path) -> _Built:
    stamp = _stamp(path)
    found = _files.get(path)
    if found is None or found.stamp != stamp:
        found = _files[path] = _Built(path, stamp)
    return found


def groups(*names: str) -> RuleSet:
    """The built-in groups of those names, the first one's rules first. UnprovedRuleError if one of their rules is not proved."""
    if not names:
        raise UsageError("groups() of no names", place=caller(), expected="at least one; `morok rules` lists them")
    key = (rules_dir(), names)
    try:
        found = _sets.get(key)
    except TypeError:  # what has no hash is no name: said below
        found = None
    if found is None:
        for name in names:
            text(name, "the name of a group of rules", UnknownNameError)
        with RULES:
            homes = {name: _home_of(name) for name in names}
            files = {path: _built_in(path) for path in homes.values()}
            parts: list[Part] = [files[homes[name]].part(name) for name in names]
            whole = [WHOLE[name] for name in names if name in WHOLE]
            blocks = [groups(*block) for block in _blocks(names)]
            fires = frozenset.intersection(*(FIRES_IN.get(name, FIRES) for name in names))
            found = _sets[key] = RuleSet(parts, blocks, groups(*whole) if whole else None, fires)
    return found


def _blocks(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """These groups around those of SYMBOLIC_SIMPLE, which many sets hold; nothing where they are not among them, or alone."""
    many = len(SYMBOLIC_SIMPLE)
    at = next((i for i in range(len(names) - many + 1) if names[i : i + many] == SYMBOLIC_SIMPLE), None)
    if at is None or len(names) == many:
        return []
    return [block for block in (names[:at], SYMBOLIC_SIMPLE, names[at + many :]) if block]


def group(name: str) -> RuleSet:
    """One built-in group."""
    return groups(name)


def tier(name: str) -> RuleSet:
    """The groups of a tier of morok.rewrite.tiers: "symbolic_simple", "symbolic" or "sym"."""
    return groups(*TIERS[choice(name, "the tier", tuple(TIERS), UnknownNameError)])


@cache
def symbolic() -> RuleSet:
    """The rules that `simplify` rewrites with."""
    return tier("symbolic")


def group_names() -> list[str]:
    """Every built-in group, file by file."""
    return list(_group_homes())


class Catalogued(NamedTuple):
    """One built-in rule; `verdict` is "unproved" where the ledger knows none for its present text."""

    name: str
    verdict: str
    file: str
    line: int


def catalogue() -> list[Catalogued]:
    """All built-in rules, file by file, proved or not. No solver is loaded."""
    out = []
    folder = rules_dir()
    for path in sorted(folder.rglob("*.rules")):
        file = _built_in(path).file
        verdicts = gate.gate().verdicts(file)
        shown = str(path.relative_to(folder.parent))
        for g in file.index.groups:
            out += [Catalogued(r.name, verdicts.get(r.name, "unproved"), shown, r.line) for r in g.rules]
    return out


@needs_memory("load rules")
def load_rules(
    path: str | os.PathLike[str], prove: bool = True, trust_ledger: bool = False, trust_helpers: bool = False
) -> RuleSet:
    r"""The rules of a file, or of every `.rules` file of a folder: a pack, named for it. Their names begin with the pack's.

    prove         prove on the spot, once per machine, each rule without a record; else UnprovedRuleError names it
    trust_ledger  accept the pack's own ledger as a record
    trust_helpers run the Python functions that its rules call; else UntrustedHelperError (MRK208)

    RuleError for a file that cannot be read or used, with every mistake in it; UnprovedRuleError for a rule that is not
    true.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "mine.rules"
    >>> _ = path.write_text('group shifts "shifts"\n\ndouble: Add(x: i32, x) ~> Shl(x, 1)\n')
    >>> x = UOp.var("x", dtypes.i32)
    >>> morok.rewrite(x + x, morok.load_rules(path)).text()
    'Shl(x: i32, 1)'
    """
    where = path_of(path, "the path of a rule file")
    prove, trust_ledger = flag(prove, "prove"), flag(trust_ledger, "trust_ledger")
    trust_helpers = flag(trust_helpers, "trust_helpers")
    pack = readable(where.resolve().stem)
    parts: list[GroupPart] = []
    for file in folders.files_of(where):
        try:
            content = read_bytes(file)
        except OSError as problem:
            what, expected = problem.strerror, "a .rules file or a folder of them"
            raise RuleError(f"cannot read the rule file: {what}", place=Place(str(file), 1), expected=expected) from None
        loaded = RuleFile(file, content, pack)
        limits = gate.gate().admit_file(loaded, prove, trust_ledger, trust_helpers)
        for part in loaded.parts():
            part.admit(placed(part.names, limits))
            parts.append(part)
    if not parts:
        raise RuleError(
            f"there are no rules in {where}", place=Place(str(where), 1), expected="a .rules file or a folder of them"
        )
    return RuleSet(parts)


@needs_memory("rewrite")
def rewrite(
    graph: Node, rules: RuleSet, *, context: Any = None, bottom_up: bool = False, trace: Trace | None = None, stage: str = ""
) -> Node:
    """`graph` rewritten until none of `rules` fires; see morok.rewrite.engine.graph_rewrite.

    UsageError for anything but a rule set; UnprovedRuleError for rules that were not admitted; RewriteLimitError where rules
    cycle.

    >>> x = UOp.var("x", dtypes.i32)
    >>> morok.rewrite(x + 0, morok.rewrite.library.group("identity_and_zero")) is x
    True
    """
    if not isinstance(rules, RuleSet):
        hint = "load_rules(..) makes a set of rules"
        raise UsageError(f"rewrite() with {type(rules).__name__}", place=caller(), expected="rules", hint=hint)
    check_node(rules.dialect, graph)
    check_context(rules, context)
    gate.refuse_unproved(rules)
    if trace is not None:
        instance(trace, Trace, "the trace", "a Trace")
    bottom_up = flag(bottom_up, "bottom_up")
    return engine.graph_rewrite(graph, rules, context=context, bottom_up=bottom_up, trace=trace, stage=stage)


__all__ = [
    "Catalogued", "catalogue", "group", "group_names", "groups", "load_rules", "proofs_dir", "rewrite", "rules_dir", "symbolic",
    "tier",
]  # fmt: skip
