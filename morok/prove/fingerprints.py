"""Digests of bytes: of a rule file, and of all that its proofs depend on. While they stay, nothing need be parsed."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from morok.names import data

_PACKAGE: Final = Path(__file__).resolve().parent.parent


def digest(text: str | bytes) -> str:
    """A short name for a text: 128 bits of its SHA-256."""
    return hashlib.sha256(data(text) if isinstance(text, str) else text).hexdigest()[:32]


def _bytes_of(files: Iterable[Path]) -> str:
    h = hashlib.sha256()
    for file in files:
        h.update(file.name.encode())
        h.update(file.read_bytes())
    return h.hexdigest()[:32]


def source_files() -> list[Path]:
    """Every file that a verdict on a built-in rule depends on."""
    files: list[Path] = []
    for folder, pattern in (
        ("prove", "*.py"),
        ("prove/encoding", "*.py"),
        ("prove/parametric", "*.py"),
        ("prove/smt", "*.py"),
        ("prove/semantics", "*.py"),
        ("prove/trust", "*.py"),  # rules are fired on their graphs
        ("accuracy", "*.py"),
        ("ir/ops", "*.py"),
        ("dsl", "*.py"),
        ("dsl/match", "*.py"),
        ("dsl", "*.lark"),
    ):
        files += sorted((_PACKAGE / folder).glob(pattern))
    return files + [_PACKAGE / "ir" / n for n in ("dtype.py", "op.py", "morok_dialect.py")] + [_PACKAGE / "dialect.py"]


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
    return _bytes_of([_PACKAGE / "dialect.py", *sorted(files)])


@functools.cache
def compiler_bytes() -> str:
    """The bytes of every file that decides which code a rule becomes, besides the rules: what was measured depends on these.

    How tensors become kernels (passes/rangeify) is not among them: a rule is measured in kernels of its own.
    """
    return _bytes_of(p for folder in ("passes", "codegen", "codegen/llvm") for p in sorted((_PACKAGE / folder).glob("*.py")))
