"""Digests of the code that gives rules their meaning: no solver is imported.

Of Morok's own ops they are read from the files: an op's covers its entry in the op table and its solver function with all that
this calls; what every proof calls belongs to the core. Comments, layout and docstrings do not count. Of other dialects `foreign`
has more to say: what they evaluate and build with is what is loaded.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Final

from morok.dialect import Dialect, OpInfo, built_in
from morok.dsl.checked import CheckedRule
from morok.prove import foreign
from morok.prove.distributions import at_one_moment
from morok.prove.fingerprints import SHARED, core_files, digest, digested_files, semantics_files, shared_files
from morok.prove.rule_syntax import ops_of
from morok.prove.static import Closure, Found, mentions, modules_in, read_module, without_docstrings
from morok.rewrite import store

PROVER_VERSION: Final = 1
_PACKAGE: Final = Path(__file__).resolve().parent.parent
_SEMANTICS: Final = "morok.prove.semantics"


class _Package:
    """Closures over the semantics of Morok's ops."""

    def __init__(self) -> None:
        folder = _PACKAGE / "prove" / "semantics"
        self.closure = Closure(modules_in(folder, _SEMANTICS), by_class=False)
        self.modules = [f"{_SEMANTICS}.{f.stem}" for f in semantics_files() if f.stem != "__init__"]

    def function(self, name: str) -> Found:
        """A solver function, in whichever module of the package it is."""
        homes = [(m, name) for m in self.modules if (at := self.closure.read(m)) is not None and name in at.pieces]
        return self.closure.of(homes, (), self.modules)

    def core(self) -> str:
        """A digest of the way from rules to obligations and verdicts: the version, the syntax of the files that define it, and
        what these call of the semantics (of variables, of equality, of compile-time numbers), whatever the ops in a rule.
        """
        parts, attrs = [str(PROVER_VERSION)], set[str]()
        called: list[tuple[str, str]] = []
        for file in core_files():
            at = read_module(".".join(("morok", *file.relative_to(_PACKAGE).with_suffix("").parts)), file)
            assert at is not None, file
            said = mentions(at.tree)
            attrs |= said.attrs
            called += self.closure.references(at, said)
            parts.append(without_docstrings(at.tree))
        shared = Closure(
            {name: read_module(name, file) for (name, _), file in zip(SHARED, shared_files(), strict=True)}.get
        )
        parts += [self.closure.of(called, attrs, self.modules).said(), shared.of(list(SHARED)).said()]
        return digest("\n".join(parts))


@functools.cache
def _package() -> _Package:
    return _Package()


@functools.cache
def _bytes() -> str:
    """A digest of the files that these digests are made from, and of the code that makes them."""
    h = hashlib.sha256(importlib.util.MAGIC_NUMBER)
    here = Path(__file__).resolve().parent
    for file in (here / "sources.py", here / "static.py", *digested_files()):
        h.update(file.name.encode() + b"\0" + file.read_bytes())
    return h.hexdigest()


def _kept(what: str, make: Callable[[], str]) -> str:
    """A digest of the package, out of the cache folder where these files are as they were."""
    key = hashlib.sha256(f"sources {what} {_bytes()}".encode()).hexdigest()
    known = store.load(key)
    if known is None:
        known = make().encode()
        store.save(key, known)
    return known.decode()


@functools.cache
def core_digest() -> str:
    """A digest of the part that every proof depends on, whatever the ops in its rule."""
    return _kept("core", lambda: _package().core())


@functools.cache
def _solver_digest(function: str) -> str:
    """A solver function of Morok's own, with all that it calls."""
    return _kept(f"of {function}", lambda: digest(_package().function(function).said()))


def solver_digest(solver: str) -> str:
    """The function at "module:function", with all that it calls."""
    module, _, function = solver.partition(":")
    if not module:
        return ""
    own = module == _SEMANTICS or module.startswith(f"{_SEMANTICS}.")
    return _solver_digest(function) if own else foreign.static_digest(module, function)


def op_digest(info: OpInfo, dialect: Dialect | None = None) -> str:
    """A digest of the part that a proof about this op depends on: its entry, its solver function, and a foreign dialect's
    evaluator.
    """
    entry = (
        info.name, tuple((o.name, o.position, o.many, o.optional, o.holds) for o in info.operands), info.fields, info.params,
        info.result, tuple(sorted((k, tuple(v)) for k, v in info.domains.items())), info.commutative, info.comparison,
        info.types, tuple(sorted(info.field_kinds.items())), info.dtype_given,
    )  # fmt: skip
    evaluated = "" if dialect is None or built_in(dialect) else f"{foreign.evaluator_digest(info)} {info.role}"
    return digest(f"{entry!r} {solver_digest(info.solver)}{evaluated}")


def told_digest(rule: CheckedRule) -> str:
    """A digest of what tells the solver of a rule's ops and dtypes: by the texts, and where loaded code is not as these say."""
    told = (rule.dialect.theory, *(rule.dialect.ops[n].solver for n in ops_of(rule)))
    return digest("\n".join(map(solver_digest, told)))


def dialect_digest(dialect: Dialect, names: frozenset[str]) -> str:
    """A digest of the part that every proof about a foreign dialect depends on: its theory, the building and reading of nodes,
    the facts among `names`.

    It is "" for Morok's own, of which the core has what all proofs need.
    """
    if built_in(dialect):
        return ""
    meaning = f"{solver_digest(dialect.theory)} {_semantics_digest()} {_verification_digest()}"
    return digest(f"{meaning} {foreign.common_digest(dialect, names)}")


@functools.cache
def _verification_digest() -> str:
    """A digest of the verification of dialects: a verdict that rests on less is none."""
    here = Path(__file__).resolve().parent
    files = (here.parent / "dsl" / "declared.py", here / "verified.py", *sorted(here.glob("dialect_*.py")))
    return digest(b"\0".join(f.read_bytes() for f in files))


@functools.cache
def _semantics_digest() -> str:
    """The semantics that a foreign theory and its solver functions may call."""

    def make() -> str:
        files = ((f"{_SEMANTICS}.{f.stem}", f) for f in semantics_files())
        return digest("\n".join(without_docstrings(m.tree) for n, f in files if (m := read_module(n, f)) is not None))

    return _kept("semantics", make)


def whole_digest(dialect: Dialect) -> str:
    """All that proofs about a foreign dialect may depend on, and what it says of itself; "" for Morok's own."""
    if built_in(dialect):
        return ""
    with at_one_moment():
        ops = [f"{name} {info.kind} {op_digest(info, dialect)}" for name, info in sorted(dialect.ops.items())]
        return digest("\n".join([core_digest(), dialect_digest(dialect, frozenset(dialect.facts)), *ops]))
