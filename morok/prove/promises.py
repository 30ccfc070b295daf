"""Promises of helpers: proofs take their contracts for granted, calls show whether they are kept.

A contract is tested by many calls in a process of its own (morok.prove.examination); what was found is remembered on this
machine, with the digest of the code that ran. Nothing is imported where nobody said to trust a module: then a record counts for
as long as the files that this code came from stay the same.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.dsl.compiled import helper_module
from morok.errors import Place, UnprovedRuleError, UntrustedHelperError
from morok.marks import built_in, trust, trusted, vouch
from morok.names import data
from morok.prove.confined import confined, possible
from morok.prove.contract_state import Tested, digests_of, worst
from morok.prove.fingerprints import answering_bytes
from morok.prove.function_digest import helper_code
from morok.prove.limits import UNLIMITED, Limits
from morok.prove.rule_syntax import canonical, typing_of
from morok.rewrite import folders, store


def of_rules(rules: Sequence[CheckedRule], trust_helpers: bool, limits: Limits = UNLIMITED) -> dict[int, Tested]:
    """The state of the contracts that each rule relies on, by the rule's id: the worst of its helpers'. When the time is over no
    test begins.
    """
    found: dict[int, Tested] = {}
    mine = [r for r in rules if r.externs and not folders.is_built_in_rule(r)]
    for file in dict.fromkeys(r.file for r in mine):
        beside = [r for r in mine if r.file == file]
        declared = [{name: (str(r.helpers), canonical(e)) for name, e in r.externs.items()} for r in beside]
        # a file, as before and after an edit, may say different things of one name
        known: dict[tuple[str, str], Tested] = {}
        for rule, contracts in zip(beside, declared, strict=True):
            for name, said in sorted(contracts.items()):
                if said not in known:
                    users = [r for r, theirs in zip(beside, declared, strict=True) if said in theirs.values()]
                    known[said] = of_helper(rule.externs[name], users, trust_helpers, limits)
            found[id(rule)] = worst([known[said] for _, said in sorted(contracts.items())])
    return found


def of_helper(
    extern: S.Extern, rules: Sequence[CheckedRule], trust_helpers: bool, limits: Limits = UNLIMITED
) -> Tested:
    """The state of one helper's contract, which is tested now, if its module is trusted and no record is of its present code."""
    module = str(rules[0].helpers)
    record = _recorded(extern, module, rules)
    if record is not None and _unchanged(record.files):
        return record
    if not (trust_helpers or trusted(module)):
        what = (
            f"the contract of {extern.name} is not tested, which runs code of {module}: `morok prove --trust-helpers`,"
        )
        return Tested("untested", message=f"{what} or load_rules(.., trust_helpers=True)")
    if why := limits.over():
        return Tested("untested", message=f"the contract of {extern.name}: {why}")
    return _tested(extern, module, rules)


def _tested(extern: S.Extern, module: str, rules: Sequence[CheckedRule]) -> Tested:
    from morok.prove.examination import examined  # lazy: loads what fires rules

    if not possible():
        return Tested(
            "untested", message=f"{extern.name} is tested in a forked process, which this system does not have"
        )
    answer, died, doing = confined(lambda step: examined(extern, module, rules, step))
    if died:
        return Tested("false", message=f"{extern.name} {died}" + (f", at {doing}" if doing else ""))
    found = Tested(*answer)
    if found.state == "tested":
        for key in _keys(extern, module, rules):
            store.save_json(key, found)
    return found


def _keys(extern: S.Extern, module: str, rules: Sequence[CheckedRule]) -> list[str]:
    """The key of a helper as each rule calls it, and of what calls it here: the other rules tested with it do not matter. Of a
    foreign dialect all counts: a helper may build whatever there is.
    """
    from morok.prove import sources  # lazy: most rules with records ask for no digests

    dialects = {id(r.dialect): r.dialect for r in rules}  # two of them may have one name
    meant = {i: f"{dialect.name} {sources.whole_digest(dialect)}" for i, dialect in dialects.items()}
    keys = []
    for rule in rules:
        said = [canonical(dataclasses.replace(rule.syntax, name="")), typing_of(rule), *map(str, rule.instances)]
        parts = [
            f"contract {answering_bytes()}",
            module,
            canonical(extern),
            meant[id(rule.dialect)],
            *said,
        ]
        keys.append(hashlib.sha256(data("\n".join(parts))).hexdigest())
    return keys


def _recorded(extern: S.Extern, module: str, rules: Sequence[CheckedRule]) -> Tested | None:
    """The record of tests of the same code, for all of these rules; None where there is no such record."""
    found: Tested | None = None
    for key in _keys(extern, module, rules):
        record = _read(key)
        if record is None or (found is not None and record.digest != found.digest):
            return None
        found = record if found is None or record.calls < found.calls else found
    return found


def _read(key: str) -> Tested | None:
    kept = store.load_json(key)
    return None if kept is None else Tested(*kept)


def _unchanged(files: Mapping[str, str]) -> bool:
    return bool(files) and "" not in files.values() and digests_of(files) == files


# The gate


def admit(rules: Iterable[CheckedRule], trust_helpers: bool = False) -> None:
    """Let these rules call their helpers, or raise UntrustedHelperError, or UnprovedRuleError where a contract does not hold."""
    calling = [r for r in rules if r.externs and r.helpers is not None and not folders.is_built_in_rule(r)]
    for rule in calling:
        if not (trust_helpers or trusted(str(rule.helpers))):
            what = f"rule {rule.name} calls {', '.join(sorted(rule.externs))} of {rule.helpers}"
            raise UntrustedHelperError(
                f"{what}, Python code that nobody said to trust: its contracts are untested",
                place=Place(rule.file, rule.line),
                hint="load_rules(.., trust_helpers=True), or `--trust-helpers`, tests them and uses it",
            )
    found = of_rules(calling, trust_helpers)
    for rule in calling:
        tested = found[id(rule)]
        if tested.state != "tested":
            why = "is not true" if tested.state == "false" else "is untested"
            raise UnprovedRuleError(
                f"rule {rule.name} relies on a contract that {why}\n  {tested.message}",
                place=Place(rule.file, rule.line),
                expected="helpers that keep their contracts",
                hint=f"`morok prove --trust-helpers {rule.file}` tests them",
            )
    for rule in calling:
        _use(rule, [r for r in calling if r.file == rule.file])


def _use(rule: CheckedRule, beside: Sequence[CheckedRule]) -> None:
    """Trust the module of a rule's helpers, as far as these are the code that was tested."""
    module = str(rule.helpers)
    trust(module)
    if built_in(module):
        return
    loaded = helper_module(module)
    for name, extern in rule.externs.items():
        users = [r for r in beside if name in r.externs]
        record = _recorded(extern, module, users)
        function = getattr(loaded, name, None)
        contexts = [r.context for r in users]
        if record is None or helper_code(function, module, contexts).digest != record.digest:
            record = _tested(extern, module, users)  # of what this process has loaded
            if record.state != "tested" or helper_code(function, module, contexts).digest != record.digest:
                what = f"rule {rule.name} calls {name} of {module}, which is not what was tested"
                why = record.message or "its code, or a constant that it uses, is another in each process"
                raise UnprovedRuleError(f"{what}\n  {why}", place=Place(rule.file, rule.line))
        vouch(f"{module}:{name}", _same_code(function, module, contexts))


def _same_code(tested: Any, module: str, contexts: Sequence[str | None]) -> Callable[[Any], bool]:
    """The condition that a function has the code that one has now which was tested, whatever lists and tables hold."""
    digest = helper_code(tested, module, contexts, variable=False).digest
    return lambda function: helper_code(function, module, contexts, variable=False).digest == digest
