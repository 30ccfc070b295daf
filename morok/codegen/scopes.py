"""The scopes of computed values.

A value computed inside a loop or an IF may not exist after it: the loop may run no iteration, and C variables end with their
block. A pure value that is used there is computed again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from morok.errors import CompileError
from morok.ir.op import Op
from morok.ir.pure import PURE
from morok.ir.uop import UOp

K = TypeVar("K")
T = TypeVar("T")


class Scopes(Generic[K, T]):
    """Names by key, in nested scopes."""

    def __init__(self) -> None:
        self.names: dict[K, T] = {}
        self._scopes: list[list[K]] = []

    def __setitem__(self, key: K, name: T) -> None:
        self.names[key] = name
        if self._scopes:
            self._scopes[-1].append(key)

    def get(self, key: K) -> T | None:
        return self.names.get(key)

    def open(self) -> None:
        self._scopes.append([])

    def close(self, forget: bool = True) -> None:
        """Close the innermost scope. If `forget`, its values cannot be used any more; else they move to the scope around it."""
        members = self._scopes.pop()
        if forget:
            for key in members:
                self.names.pop(key, None)
        elif self._scopes:
            self._scopes[-1] += members


class Values(Scopes[UOp, T]):
    """The names of results, by instruction."""

    def find(self, u: UOp, compute: Callable[[UOp], None], kernel: str) -> T:
        """The name of the value of `u`; `compute` renders forgotten pure values again. CompileError if there is no value, and `u`
        cannot be computed here.
        """
        found = self.names.get(u)
        if found is not None:
            return found
        for node in self.missing(u):
            compute(node)
        found = self.names.get(u)
        if found is None:
            raise CompileError(
                f"kernel {kernel}: {u.op.name} is used before it is computed, or outside the loop that computes it",
                expected="operands before their uses, inside the same loop or around it",
                hint="instructions are rendered in the order of the list",
            )
        return found

    def missing(self, u: UOp) -> list[UOp]:
        """The nodes to compute again for `u`, operands first, `u` last: all pure nodes below it without a name."""
        out: list[UOp] = []
        seen: set[UOp] = set()
        stack = [(u, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                out.append(node)
            elif node not in seen and node not in self.names and node.op in PURE:
                seen.add(node)
                stack.append((node, True))
                # the value of an After is its first operand; the others are order only
                operands = node.src[:1] if node.op is Op.After or node.op is Op.Barrier else node.src
                stack.extend((s, False) for s in operands)
        return out
