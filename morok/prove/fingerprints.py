"""Digests of bytes: of a rule file, and of all that its proofs depend on. While they stay, nothing need be parsed."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from morok.names import data

_PACKAGE: Final = Path(__file__).resolve().parent.parent
# Besides the prover: what compile-time values are, what rules say of lanes, how their syntax is gone through, what dtypes are,
# which ops are places, and the meanings that the interpreter and the prover share.
_BESIDE: Final = ("dsl/concrete.py", "dsl/constant_lanes.py", "dsl/extent.py", "dsl/functions.py", "dsl/values.py",
                  "dsl/checked.py", "dsl/special_ops.py", "dsl/syntax.py", "ir/dtype.py", "ir/places.py",
                  "lane_roles.py", "value_domains.py", "view_meanings.py")  # fmt: skip
# What every proof depends on besides the ops in its rule: how rules become obligations, and how these are judged.
_CORE: Final = ("kinds.py", "obligations.py", "judging.py", "progress.py", "solve.py", "answers.py", "precondition_models.py",
                "cached_per_rule.py", "digest.py", "rule_syntax.py", "open_operands.py", "forms.py", "place_forms.py",
                "fold_forms.py", "meanings.py", "encoding/*.py", "parametric/*.py", "smt/*.py", "counterexample.py",
                "graph_counterexample.py", "refutation.py",
                *(f"trust/{name}.py" for name in ("arranged", "differential", "graphs", "lane_memory_graphs", "large",
                                                  "simt_graphs", "structures", "tensor_graphs", "unrolled")),  # of what is fired
                "stand_ins.py", "symbol.py", "semantics/term.py", "semantics/theory.py", "semantics/numbers.py")  # fmt: skip
# What others share with proofs: what folds begin with, what a dtype makes of a number, which ops are inexact, the rounds of the
# random generator, how an op's declaration of types is read.
SHARED: Final = (
    ("morok.ir.ops.loop", "identity_of"),
    ("morok.ir.number", "coerce"),
    ("morok.ir.ops.transcendental", "TOLERANCE"),
    ("morok.ir.ops.transcendental", "threefry_words"),
    ("morok.dsl.structural", "relations"),
)


def digest(text: str | bytes) -> str:
    """A short name for a text: 128 bits of its SHA-256."""
    return hashlib.sha256(data(text) if isinstance(text, str) else text).hexdigest()[:32]


def _bytes_of(files: Iterable[Path]) -> str:
    h = hashlib.sha256()
    for file in files:
        h.update(file.name.encode())
        h.update(file.read_bytes())
    return h.hexdigest()[:32]


def core_files() -> tuple[Path, ...]:
    """The files of which all counts for every proof."""
    found = [file for pattern in _CORE for file in sorted((_PACKAGE / "prove").glob(pattern))]
    return (*found, *(_PACKAGE / name for name in _BESIDE))


def shared_files() -> tuple[Path, ...]:
    """The files of the functions that the evaluator and the solver share."""
    return tuple(_PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py") for name, _ in SHARED)


def semantics_files() -> tuple[Path, ...]:
    """The files of the ops' meanings."""
    return tuple(sorted((_PACKAGE / "prove" / "semantics").glob("*.py")))


def digested_files() -> tuple[Path, ...]:
    """The files that the digest of a built-in rule is read from, besides the table of ops."""
    return (*shared_files(), *core_files(), *semantics_files())


def source_files() -> list[Path]:
    """Every file that a verdict on a built-in rule depends on: those that its digest is read from, and what makes digests."""
    files = list(digested_files())
    for folder, pattern in (
        ("prove", "*.py"),
        ("prove/encoding", "*.py"),
        ("prove/parametric", "*.py"),
        ("prove/smt", "*.py"),
        ("prove/trust", "*.py"),  # rules are fired on their graphs
        ("accuracy", "*.py"),
        ("ir/ops", "*.py"),
        ("dsl", "*.py"),
        ("dsl/match", "*.py"),
        ("dsl", "*.lark"),
    ):
        files += sorted((_PACKAGE / folder).glob(pattern))
    files += [_PACKAGE / name for name in ("ir/op.py", "ir/morok_dialect.py", "dialect.py")]
    return list(dict.fromkeys(files))


@functools.cache
def source_bytes() -> str:
    """The bytes of those files: while they stay, no digest needs computing."""
    return _bytes_of(source_files())


@functools.cache
def answering_bytes() -> str:
    """The bytes of every file that has a part in the prover's answers, whatever they are: the rule language, matchers, the
    interpreter and the prover itself.
    """
    folders = [_PACKAGE / name for name in ("dsl", "rewrite", "ir", "prove", "accuracy")]
    files = [p for folder in folders for p in folder.rglob("*") if p.suffix in (".py", ".lark", ".txt")]
    ground = [_PACKAGE / name for name in ("dialect.py", "lane_roles.py", "value_domains.py", "view_meanings.py")]
    return _bytes_of([*ground, *sorted(files)])


@functools.cache
def compiler_bytes() -> str:
    """The bytes of every file that decides which code a rule becomes, besides the rules: what was measured depends on these.

    How tensors become kernels (passes/rangeify) is not among them: a rule is measured in kernels of its own.
    """
    return _bytes_of(
        p for folder in ("passes", "codegen", "codegen/llvm") for p in sorted((_PACKAGE / folder).glob("*.py"))
    )
