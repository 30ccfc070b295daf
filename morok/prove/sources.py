"""Digests of the code that gives rules their meaning, read from the files: no solver is imported.

The digest of an op covers its entry in the op table and its solver function with all that this calls; what every proof calls
belongs to the core. Comments, layout and docstrings do not count.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from morok.dialect import Dialect, OpInfo
from morok.prove.stamp import digest

# Besides the prover: what compile-time values are, what rules say of lanes, what dtypes are.
_BESIDE: Final = ("dsl/concrete.py", "dsl/functions.py", "dsl/values.py", "dsl/checked.py", "ir/dtype.py")
PROVER_VERSION: Final = 1
_PACKAGE: Final = Path(__file__).resolve().parent.parent
# What every proof depends on besides the ops in its rule: how rules become obligations, and how these are judged.
_CORE: Final = ("kinds.py", "obligations.py", "solve.py", "answers.py", "witness.py", "asked_of_rules.py", "digest.py",
                "encoding/*.py", "kept.py", "smt.py", "symbol.py", "semantics/term.py", "semantics/graph.py",
                "semantics/theory.py", "semantics/numbers.py")  # fmt: skip
_SEMANTICS: Final = "morok.prove.semantics"
_FOLDS: Final = ("morok.ir.ops.loop", "identity")  # what folds begin with, for the evaluator and the solver alike


def without_docstrings(tree: ast.AST) -> str:
    """The syntax of a piece of Python, without layout, comments and docstrings."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and isinstance(body, list) and body:
            first = body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                node.body = body[1:] or [ast.Pass()]
    return ast.dump(tree)


def _pieces(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The functions, methods and module constants of a file, by bare name."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.FunctionDef):
                    yield item.name, item
                elif isinstance(item, ast.Assign):
                    yield from ((t.id, item) for t in item.targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.Assign):
            yield from ((t.id, node) for t in node.targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node


def _mentioned(tree: ast.AST) -> set[str]:
    """The names, and the names of attributes, in a piece of Python."""
    return {n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(tree) if isinstance(n, (ast.Name, ast.Attribute))}


class Sources:
    """The functions of a package or of one file, by name, with the names that each mentions."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.text: dict[str, list[str]] = {}
        self.mentions: dict[str, set[str]] = {}
        for file in files:
            for name, node in _pieces(ast.parse(file.read_text(encoding="utf-8"))):
                self.mentions.setdefault(name, set()).update(_mentioned(node))
                self.text.setdefault(name, []).append(without_docstrings(node))

    def closure(self, *names: str) -> str:
        """A digest of everything that goes by these names and by every name it mentions, and so on.

        Methods are found by bare name, whatever their class: more may be covered than is called, never less.
        """
        seen: set[str] = set()
        todo = list(names)
        while todo:
            at = todo.pop()
            if at not in seen and at in self.text:
                seen.add(at)
                todo.extend(self.mentions[at])
        return digest("\n".join(f"{n}:{t}" for n in sorted(seen) for t in self.text[n]))


@functools.cache
def _sources(module: str) -> Sources:
    return Sources(module_files(module))


def module_files(module: str) -> tuple[Path, ...]:
    """The files of a module or package, found without running it."""
    spec = _find(module)
    if spec is None:
        return ()
    return tuple(sorted(spec.parent.glob("*.py"))) if spec.name == "__init__.py" else (spec,)


def _find(module: str) -> Path | None:
    if module.startswith("morok."):  # without importing the packages above it
        base = _PACKAGE.joinpath(*module.split(".")[1:])
        return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    import sys

    loaded = sys.modules.get(module)
    if loaded is not None and getattr(loaded, "__file__", None):
        return Path(str(loaded.__file__))
    spec = importlib.util.find_spec(module)
    return Path(spec.origin) if spec is not None and spec.origin else None


@functools.cache
def _solver_digest(solver: str) -> str:
    module, _, function = solver.partition(":")
    return _sources(module).closure(function) if module else ""


def op_digest(info: OpInfo) -> str:
    """What a proof about this op depends on: its entry and its solver function."""
    entry = (
        info.name, tuple((o.name, o.position, o.many, o.optional) for o in info.operands), info.fields, info.params, info.result,
        tuple(sorted((k, tuple(v)) for k, v in info.domains.items())), info.commutative, info.comparison,
    )  # fmt: skip
    return digest(f"{entry!r} {_solver_digest(info.solver)}")


@functools.cache
def core_digest() -> str:
    """How rules become obligations and obligations verdicts: the version, the syntax of the files that say it, and what these
    call of the semantics (of variables, of equality, of compile-time numbers), whatever the ops in a rule.
    """
    parts = [str(PROVER_VERSION)]
    called: set[str] = set()
    for file in core_files():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        called |= _mentioned(tree)
        parts.append(without_docstrings(tree))
    semantics = _sources(_SEMANTICS)
    implicit = {name for name in semantics.text if name.startswith("__")}
    parts += [semantics.closure(*called, *implicit), _sources(_FOLDS[0]).closure(_FOLDS[1])]
    return digest("\n".join(parts))


def core_files() -> tuple[Path, ...]:
    """The files of which all counts for every proof."""
    found = [file for pattern in _CORE for file in sorted((_PACKAGE / "prove").glob(pattern))]
    return (*found, *(_PACKAGE / name for name in _BESIDE))


def theory_digest(dialect: Dialect) -> str:
    """The file of a dialect's theory, and the semantics that it may call; of Morok's own the core has what all proofs need."""
    module = dialect.theory.partition(":")[0]
    if module.startswith("morok."):
        return ""
    files = (*module_files(module), *module_files(_SEMANTICS))
    return digest("\n".join(without_docstrings(ast.parse(f.read_text(encoding="utf-8"))) for f in files))
