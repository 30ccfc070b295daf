"""The built-in rule groups and rule packs. Both pass the gate, so no rule runs unproved."""

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
from morok.names import did_you_mean, nearest, readable
from morok.out_of_memory import needs_memory
from morok.rewrite import engine, folders, gate
from morok.rewrite.files import GroupPart, RuleFile
from morok.rewrite.parts import Part, limits_by_position
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
_files: dict[Path, _BuiltInFile] = {}
_sets: dict[tuple[Path, tuple[str, ...]], RuleSet] = {}


def _group_homes() -> dict[str, Path]:
    """The file of each built-in group, found by a search for group lines; nothing is parsed."""
    folder = rules_dir()
    homes = _homes.get(folder)
    if homes is None:
        homes = {}
        for path in sorted(folder.rglob("*.rules")):
            for m in _HEADS.finditer(path.read_bytes()):
                name = m.group(1).decode()
                if name in homes:
                    raise DuplicateRuleError(
                        f"rule group {name} is defined twice: here and in {homes[name]}", place=Place(str(path), 1)
                    )
                homes[name] = path
        _homes[folder] = homes
    return homes


def _home_of(group_name: str) -> Path:
    found = _group_homes().get(group_name)
    if found is None:
        hint = did_you_mean(nearest(group_name, _group_homes(), 2), "`morok rules` lists them")
        raise UnknownNameError(f"there is no built-in rule group {group_name!r}", place=caller(), hint=hint)
    return found


_page_path: Final = cache(folders.page_path)  # computing it costs more than two calls of `stat`

FileVersion = tuple[int, int, int]  # of a rule file and its ledger page: (time and size of the file, time of the page)


def _file_version(path: Path) -> FileVersion:
    status = path.stat()
    page = _page_path(path)
    return status.st_mtime_ns, status.st_size, page.stat().st_mtime_ns if page.is_file() else 0


class _BuiltInFile:
    """A built-in file and the gate's verdicts on its groups.

    limits    the limits of its rules by name, if all are unchanged since they were proved; None if that is not known
    compared  True if the rules need no comparison with the ledger, or have been compared
    refused   the errors of groups with a rule that was not admitted
    """

    def __init__(self, path: Path, version: FileVersion) -> None:
        self.version = version
        self.file = RuleFile(path, path.read_bytes(), "")
        self.limits = gate.gate().unchanged(self.file)
        self.compared = self.limits is not None
        self.refused: dict[str, UnprovedRuleError] = {}
        self.parts: dict[str, GroupPart] = {}

    def part(self, name: str) -> GroupPart:
        """The group of this name, admitted. UnprovedRuleError if one of its rules is not proved."""
        if name in self.refused:
            raise self.refused[name].with_traceback(None)
        part = self.parts.get(name)
        if part is None:
            part = self.file.part(name)
            if not self.compared:
                self.compared = True  # once for all groups of the file
                self.limits = gate.gate().compared(self.file)
            if self.limits is not None:
                part.admit(limits_by_position(part.names, self.limits))
            else:
                try:
                    part.admit(gate.gate().admit(part.rules()))
                except UnprovedRuleError as refusal:
                    self.refused[name] = refusal
                    raise
            self.parts[name] = part
        return part


def _built_in_file(path: Path) -> _BuiltInFile:
    version = _file_version(path)
    found = _files.get(path)
    if found is None or found.version != version:
        found = _files[path] = _BuiltInFile(path, version)
    return found


def groups(*names: str) -> RuleSet:
    """A rule set of the built-in groups of these names, in this order. UnprovedRuleError if one of their rules is not proved."""
    if not names:
        raise UsageError("groups() of no names", place=caller(), expected="at least one; `morok rules` lists them")
    key = (rules_dir(), names)
    try:
        found = _sets.get(key)
    except TypeError:  # an unhashable object is no name: `text` raises the error
        found = None
    if found is None:
        for name in names:
            text(name, "the name of a group of rules", UnknownNameError)
        with RULES:
            homes = {name: _home_of(name) for name in names}
            files = {path: _built_in_file(path) for path in homes.values()}
            parts: list[Part] = [files[homes[name]].part(name) for name in names]
            whole = [WHOLE[name] for name in names if name in WHOLE]
            blocks = [groups(*block) for block in _blocks(names)]
            fires = frozenset.intersection(*(FIRES_IN.get(name, FIRES) for name in names))
            found = _sets[key] = RuleSet(parts, blocks, groups(*whole) if whole else None, fires)
    return found


def _blocks(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The groups as up to three blocks: before, of and after SYMBOLIC_SIMPLE. Many sets hold that block, and share its matcher.

    Empty if the names do not hold SYMBOLIC_SIMPLE, or nothing else.
    """
    length = len(SYMBOLIC_SIMPLE)
    at = next((i for i in range(len(names) - length + 1) if names[i : i + length] == SYMBOLIC_SIMPLE), None)
    if at is None or len(names) == length:
        return []
    return [block for block in (names[:at], SYMBOLIC_SIMPLE, names[at + length :]) if block]


def group(name: str) -> RuleSet:
    """One built-in group."""
    return groups(name)


def tier(name: str) -> RuleSet:
    """A rule set of the groups of a tier (morok.rewrite.tiers): "symbolic_simple", "symbolic" or "sym"."""
    return groups(*TIERS[choice(name, "the tier", tuple(TIERS), UnknownNameError)])


@cache
def symbolic() -> RuleSet:
    """The rules that `simplify` rewrites with."""
    return tier("symbolic")


class Catalogued(NamedTuple):
    """A built-in rule; `verdict` is "unproved" if the ledger has none for its present text."""

    name: str
    verdict: str
    file: str
    line: int


def catalogue() -> list[Catalogued]:
    """All built-in rules, file by file, proved or not. It loads no solver."""
    out = []
    folder = rules_dir()
    for path in sorted(folder.rglob("*.rules")):
        file = _built_in_file(path).file
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
            raise RuleError(
                f"cannot read the rule file: {what}", place=Place(str(file), 1), expected=expected
            ) from None
        loaded = RuleFile(file, content, pack)
        limits = gate.gate().admit_file(loaded, prove, trust_ledger, trust_helpers)
        for part in loaded.parts():
            part.admit(limits_by_position(part.names, limits))
            parts.append(part)
    if not parts:
        raise RuleError(
            f"there are no rules in {where}", place=Place(str(where), 1), expected="a .rules file or a folder of them"
        )
    return RuleSet(parts)


@needs_memory("rewrite")
def rewrite(
    graph: Node,
    rules: RuleSet,
    *,
    context: Any = None,
    bottom_up: bool = False,
    trace: Trace | None = None,
    stage: str = "",
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
