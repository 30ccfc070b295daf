"""The interface of a kernel during rendering, in any language: its parameters, and the loops and branches currently open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NoReturn

from morok.codegen.rendered import Argument, Variable
from morok.errors import CompileError
from morok.ir.dtype import PtrType
from morok.ir.op import Op
from morok.ir.uop import UOp

_GLOBAL: Final = Op.DefineGlobal


@dataclass(slots=True)
class Frame:
    """A kernel's buffers by slot, its run-time values by name, and the currently open Ranges and Ifs, the outermost first."""

    name: str
    arguments: dict[int, Argument] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    open: list[UOp] = field(default_factory=list)

    def buffer(self, u: UOp) -> int:
        """The slot of a DefineGlobal, which becomes an argument."""
        assert isinstance(u.dtype, PtrType)
        self.arguments[u.arg] = Argument(u.arg, u.dtype.base, False)
        return int(u.arg)

    def variable(self, u: UOp) -> int:
        """The position of a DefineVar among the run-time values, which it joins if it is new."""
        label = str(u.arg[0])
        self.variables.setdefault(label, Variable(label, u.dtype, u.vmin, u.vmax))
        return list(self.variables).index(label)

    def writes(self, kept: UOp) -> None:
        """Mark the argument of this storage as written, if it is global."""
        if kept.op is _GLOBAL:
            self.arguments[kept.arg] = Argument(kept.arg, self.arguments[kept.arg].dtype, True)

    def close(self, u: UOp) -> None:
        """Close the innermost Range or If by an End or EndIf. CompileError if `u` closes another."""
        inner = self.open.pop() if self.open else None
        if u.op is Op.End and (inner is not u.src[1] or len(u.src) != 2):
            raise CompileError(f"kernel {self.name}: an End closes the innermost open loop, and exactly one")
        if u.op is Op.EndIf and (inner is None or inner.op is not Op.If):
            raise CompileError(f"kernel {self.name}: an EndIf without its If")

    def unknown(self, u: UOp, language: str) -> NoReturn:
        """Raise CompileError for an instruction without code in the language."""
        raise CompileError(
            f"kernel {self.name}: {language} has no code for {u.op.name}",
            expected="an instruction that stage 22 may leave",
            hint="lower it in the pipeline; Target.unsupported names the ops to decompose",
        )

    def takes(self) -> tuple[tuple[Argument, ...], tuple[Variable, ...]]:
        """(buffers by slot, run-time values) after the last instruction. CompileError if a loop or branch is still open."""
        if self.open:
            raise CompileError(f"kernel {self.name}: a loop or IF is never closed")
        return tuple(self.arguments[slot] for slot in sorted(self.arguments)), tuple(self.variables.values())
