"""The verdict on every op's transfer function of the bounds, and its record `bounds.json` in the ledger.

Like a rule, a function is proved once for exactly its present source, the semantics of its op and the present prover; while
these stay, the record is read and no solver loaded.
"""

from __future__ import annotations

import ast
import inspect
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

from morok.dialect import OpInfo
from morok.ir.morok_dialect import MOROK
from morok.ir.op import TABLE, Op
from morok.prove import bounds_proofs, fingerprints, ledger, sources
from morok.prove.answers import Answer
from morok.prove.ledger import Page, Record
from morok.prove.solve import version
from morok.prove.static import Closure, read_module, without_docstrings
from morok.prove.verdict import Verdict
from morok.rewrite import folders

_PACKAGE: Final = Path(__file__).resolve().parent.parent
_PROVER: Final = ("bounds_proofs.py", "intervals.py", "nonlinear_lemmas.py", "solve.py", "answers.py", "semantics/term.py",
                  "semantics/theory.py", "semantics/integers.py", "semantics/bits.py")  # fmt: skip
# By definition: a constant's bounds are its value, a variable's are its own, and Invalid has no value.
GIVEN: Final = frozenset({Op.Const, Op.VConst, Op.DefineVar, Op.Invalid})
LEMMAS: Final = "bounds.lemmas"


def page_path() -> Path:
    return folders.proofs_folder() / "bounds.json"


def bounded_ops() -> list[Op]:
    """The ops whose bounds are computed by a function, in the order of the table."""
    return [e.op for e in TABLE.entries.values() if e.bounds is not None and e.op not in GIVEN]


def names() -> dict[str, str]:
    """The name of every verdict, with the digest of what it depends on."""
    prover = _prover_digest()
    files = [_PACKAGE / "ir" / "bounds.py", *sorted((_PACKAGE / "ir" / "ops").glob("*.py"))]
    modules = {
        n: read_module(n, f)
        for f in files
        for n in [".".join(("morok", *f.relative_to(_PACKAGE).with_suffix("").parts))]
    }
    known = Closure(modules.get, by_class=False)
    found = {LEMMAS: prover}
    for op in bounded_ops():
        function = TABLE[op].bounds
        assert function is not None
        info: OpInfo = MOROK.ops[op.name]
        called = known.of([(function.__module__, function.__name__)], (), modules)
        found[f"bounds.{op.name}"] = fingerprints.digest(f"{prover} {called.said()} {sources.op_digest(info)}")
    return found


def _prover_digest() -> str:
    folder = _PACKAGE / "prove"
    texts = [without_docstrings(ast.parse((folder / n).read_text(encoding="utf-8"))) for n in _PROVER]
    return fingerprints.digest("\n".join(texts))


def _place(name: str) -> tuple[str, int]:
    """The file and line of a transfer function, or of the lemmas."""
    if name == LEMMAS:
        return str(_PACKAGE / "prove" / "nonlinear_lemmas.py"), 1
    function = TABLE[Op[name.partition(".")[2]]].bounds
    assert function is not None
    return inspect.getfile(function), function.__code__.co_firstlineno


def verdicts(*, use_cache: bool = True, write: bool = False, jobs: int = 1, budget: int | None = None) -> list[Verdict]:
    """The verdict on each transfer function and on the lemmas; what the ledger says of the present sources is believed."""
    digests = names()
    page = ledger.read_page(page_path()) if use_cache else None
    known = {} if page is None else page.records
    current = {n for n, d in digests.items() if n in known and known[n].digest == d}
    stale = [n for n in digests if n not in current]
    fresh = dict(zip(stale, _judge_all(stale, jobs, budget), strict=True))
    found = [fresh[n] if n in fresh else Verdict.recorded(known[n], n, *_place(n)) for n in digests]
    if write:
        records: dict[str, Record] = {v.name: v.record(digests[v.name], v.name) for v in found if v.usable and v.final}
        ledger.write_page(page_path(), Page("morok/ir/bounds.py", records))
    return found


def _judge_all(which: Sequence[str], jobs: int, budget: int | None) -> list[Verdict]:
    if not which:
        return []
    budgets = [budget] * len(which)
    if jobs <= 1:
        return list(map(judge, which, budgets))
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(judge, which, budgets))


def judge(name: str, budget: int | None = None) -> Verdict:
    """Prove one transfer function, or the lemmas."""
    began = time.perf_counter()
    limit = budget or bounds_proofs.BUDGET
    found = (
        bounds_proofs.prove_lemmas(limit)
        if name == LEMMAS
        else bounds_proofs.prove_bounds(Op[name.partition(".")[2]], limit)
    )
    last = found[-1]
    verdict = {Answer.UNSAT: "proved", Answer.SAT: "refuted", Answer.UNKNOWN: "unknown"}[last.answer]
    message = "" if verdict == "proved" else f"{last.where}: {last.counterexample or 'the budget is spent'}"
    scope: tuple[str, ...] = (f"{len(found)} cases of dtypes and infinite ends", f"{sum(f.paths for f in found)} paths")
    if name == LEMMAS:
        scope = tuple(f.where for f in found)
    return Verdict(
        name, *_place(name), verdict, scope, time.perf_counter() - began,
        message=message, resources=sum(f.resources for f in found), solver=version(),
    )  # fmt: skip


def is_current() -> bool:
    """True if the ledger has a verdict on exactly the present functions."""
    page = ledger.read_page(page_path())
    return page is not None and {n: r.digest for n, r in page.records.items()} == names()
