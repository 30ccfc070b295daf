"""Explain a rule: its text and meaning, its verdict with its grounds, and the stages that run it; or an error code."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from morok import errors
from morok.dsl.check import check_file
from morok.dsl.checked import CheckedRule
from morok.dsl.format import format_rule
from morok.errors import MorokError, UsageError
from morok.names import did_you_mean, nearest
from morok.prove import ledger, promises
from morok.prove.answers import DEFAULT_BUDGET
from morok.prove.api import prove
from morok.prove.obligation_store import script
from morok.prove.obligations import by_numbers, prove_rule
from morok.prove.progress import Progress
from morok.prove.verdict import Verdict
from morok.rewrite.library import catalogue, rules_dir
from morok.tools import describe
from morok.tools.catalogue import answers, entries
from morok.tools.grounds import grounds
from morok.tools.infix import conjuncts, infix
from morok.tools.output import emit_json
from morok.tools.rule_paths import packed_files


def _codes() -> dict[str, type[MorokError]]:
    """The error class of each code."""
    found: dict[str, type[MorokError]] = {}
    for value in vars(errors).values():
        if inspect.isclass(value) and issubclass(value, MorokError):
            found.setdefault(value.code, value)
    return found


def _code(code: str) -> dict[str, Any]:
    known = _codes()
    found = known.get(code)
    if found is None:
        raise UsageError(f"there is no error code {code}", expected=f"a code in {min(known)}..{max(known)}")
    return {"code": code, "error": f"morok.errors.{found.__name__}", "meaning": inspect.cleandoc(found.__doc__ or "")}


def _answers(name: str, wanted: str) -> bool:
    return name == wanted or name.endswith("." + wanted) or f".{wanted}." in f".{name}."


def _find(wanted: str, paths: list[str]) -> Iterator[tuple[Path, CheckedRule]]:
    if paths:
        files = packed_files(paths)
    else:  # parse only the files with such a rule
        root = rules_dir().parent
        files = [(root / f, "") for f in dict.fromkeys(e.file for e in catalogue() if _answers(e.name, wanted))]
    for file, pack in files:
        yield from ((file, rule) for rule in check_file(file, pack=pack).rules() if _answers(rule.name, wanted))


def _near(wanted: str, paths: list[str]) -> str:
    """A hint for an unknown name: the rules with the most similar names, or the ways to find one."""
    if paths:
        known = [r.name for file, pack in packed_files(paths) for r in check_file(file, pack=pack).rules()]
    else:
        known = [e.name for e in catalogue()]
    short = {name.split(".", k)[-1]: name for name in reversed(known) for k in range(name.count("."), -1, -1)}
    close = list(dict.fromkeys(short[c] for c in nearest(wanted, short, 6)))[:3]
    return did_you_mean(close, "`morok rules` lists the built-in ones; --rules names a file of yours")


def _sources(name: str) -> list[dict[str, str]]:
    """The catalogue's entries that name a built-in rule."""
    cited = [e for e in entries(rules_dir()) if any(answers(name, rule) for rule in e.rules)]
    return [
        {"id": e.id, "section": e.section, "text": e.text, "decision": e.decision, "reason": e.reason} for e in cited
    ]


def _whose(rule: CheckedRule, variable: str) -> str:
    """The name of a dtype variable; for an unnamed one ($..) the names of the nodes with that dtype."""
    if not variable.startswith("$"):
        return variable
    nodes = [name for name, b in rule.bindings.items() if b.type is not None and b.type.element == variable]
    return ", ".join(nodes) or variable


def _of_nodes(rule: CheckedRule, text: str) -> str:
    """A text in which lanes that have no name are those of a node that has them, where the rule has a name for one."""
    nodes: dict[str, str] = {}
    for name, b in rule.bindings.items():
        if b.type is not None and isinstance(b.type.lanes, str) and not b.type.pointer and not b.type.place:
            nodes.setdefault(b.type.lanes, name)
    return re.sub(r"lanes\((\$?\w+)\)", lambda found: f"lanes({nodes.get(found[1], found[1])})", text)


def _proofs(rule: CheckedRule) -> list[dict[str, list[str]]]:
    """The questions of a proof for all sizes, without superfluous parts: their laws, premises and conclusions."""
    progress = Progress(DEFAULT_BUDGET, keep=False)
    return [
        {
            "laws": list(g.laws),
            "known": [_of_nodes(rule, infix(c)) for c in g.known],
            "claims": [_of_nodes(rule, c) for c in conjuncts(g.claim)],
        }
        for g in grounds(rule, progress.ask, by_numbers(rule, progress))
    ]


def _rule(file: Path, rule: CheckedRule, built_in: bool) -> dict[str, Any]:
    record = ledger.recorded(rule)
    if record is not None:
        verdict: Verdict | None = Verdict.recorded(record, rule.name, str(file), rule.line)
    elif built_in:
        verdict = None
    else:
        (verdict,) = prove([rule], contracts=False)
    if verdict is not None:
        verdict = verdict.with_contracts(promises.of_rules([rule], trust_helpers=False).get(id(rule)))
    syntax = rule.syntax
    everywhere = verdict is not None and any(line.startswith("any number of") for line in verdict.scope)
    proofs = _proofs(rule) if everywhere else []
    return {
        "name": rule.name,
        "text": format_rule(syntax),
        "meaning": syntax.doc,
        "place": f"{file}:{rule.line}",
        "dtypes": {_whose(rule, variable): list(names) for variable, names in rule.domains.items()},
        "assuming": list(syntax.assuming),
        "helpers": sorted(rule.externs),
        "verdict": "unproved" if verdict is None else verdict.verdict,
        "contracts": "" if verdict is None else verdict.contracts,
        "scope": [] if verdict is None else list(verdict.scope),
        "message": "" if verdict is None else verdict.message,
        "counterexample": None if verdict is None else verdict.counterexample,
        "solver": "" if verdict is None else verdict.solver,
        "premises": describe.premises(rule),
        "lemmas": describe.lemmas(rule),
        "proofs": proofs,
        "lane_by_lane": everywhere and not proofs,
        "sources": _sources(rule.name) if built_in else [],
        "tiers": describe.tiers(rule.name.split(".")[0]) if built_in else [],
        "stages": describe.stages(rule.name.split(".")[0]) if built_in else [],
    }


def _script(rule: CheckedRule) -> str:
    """The obligations of a rule as SMT-LIB; the rule is proved if each is `unsat`."""
    verdict = prove_rule(rule, DEFAULT_BUDGET, keep=True)
    return f"; {rule.name}: {verdict.verdict}\n{script(verdict.obligations)}"


def _show(row: dict[str, Any]) -> None:
    lines = [row["text"]]
    if row["meaning"]:
        lines.append(f"  {row['meaning']}")
    lines.append(f"  {row['name']} at {row['place']}")
    for variable, names in row["dtypes"].items():
        lines.append(f"  {variable + ' ' if len(row['dtypes']) > 1 else ''}at {', '.join(names)}")
    for key in ("assuming", "helpers"):
        if row[key]:
            lines.append(f"  {key} {', '.join(row[key])}")
    lines.append(
        f"  verdict: {row['verdict']}" + (f", by {row['solver']}" if row["premises"] and row["solver"] else "")
    )
    lines += [f"    contracts: {row['contracts']}"] * bool(row["contracts"])
    lines += [f"    {line}" for line in (*row["scope"], *row["message"].splitlines())]
    if row["premises"]:
        lines += ["  the proof takes for granted that", *(f"    {line}" for line in row["premises"])]
    if row["lemmas"]:
        lines += ["  and proves besides that", *(f"    {line}" for line in row["lemmas"])]
    if laws := dict.fromkeys(law for proof in row["proofs"] for law in proof["laws"]):
        lines += ["  at every size by the laws", *(f"    {law}" for law in laws)]
    if row["lane_by_lane"]:
        lines.append("  at any number of lanes, as it holds lane by lane")
    for proof in row["proofs"][:1]:
        lines += ["  where", *(f"    {c}" for c in proof["known"])] if proof["known"] else []
        lines += ["  it follows that", *(f"    {c}" for c in proof["claims"])]
    if len(row["proofs"]) > 1:
        lines.append(f"  and so on in {len(row['proofs']) - 1} more questions: --json and --smt2 have them all")
    for source in row["sources"]:
        lines.append(f"  {source['decision']} from the texts' {source['id']}: {source['text']}")
        lines += [f"    {source['reason']}"] * bool(source["reason"])
    if row["tiers"]:
        lines.append(f"  belongs to {', '.join(row['tiers'])}")
    lines += [f"  runs in stage {stage}" for stage in row["stages"]]
    print("\n".join(lines))


def run(args: argparse.Namespace) -> int:
    what: str = args.what
    if what.upper().startswith("MRK"):
        row = _code(what.upper())
        if args.json:
            emit_json(row)
        else:
            print(f"{row['code']} {row['error']}\n{row['meaning']}")
        return 0
    found = list(_find(what, args.rules))
    if not found:
        raise UsageError(f"there is no rule {what!r}", hint=_near(what, args.rules))
    if args.smt2:
        for _, rule in found:
            print(_script(rule), end="")
        return 0
    rows = [_rule(file, rule, not args.rules) for file, rule in found]
    if args.json:
        emit_json({"rules": rows})
        return 0
    for n, row in enumerate(rows):
        if n:
            print()
        _show(row)
    return 0
