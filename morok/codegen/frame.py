"""The interface of a kernel during rendering, in any language: its parameters, and the loops and branches currently open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from morok.codegen.rendered import Argument, Variable
from morok.errors import CompileError
from morok.ir.dtype import PtrType
from morok.ir.op import Op
from morok.ir.uop import UOp


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

    def mark_written(self, kept: UOp) -> None:
        """Mark the argument of this storage as written, if it is global."""
        if kept.op is Op.DefineGlobal:
            self.arguments[kept.arg] = Argument(kept.arg, self.arguments[kept.arg].dtype, True)

    def close(self, u: UOp) -> None:
        """Close the innermost Range or If by an End or EndIf. CompileError if `u` closes another."""
        inner = self.open.pop() if self.open else None
        if u.op is Op.End and (inner is not u.src[1] or len(u.src) != 2):
            raise CompileError(
                f"kernel {self.name}: an End closes another loop than the innermost open one, or several",
                expected="loops that nest, with one End each",
            )
        if u.op is Op.EndIf and (inner is None or inner.op is not Op.If):
            raise CompileError(
                f"kernel {self.name}: an EndIf without its If", expected="branches that nest, with one EndIf each"
            )

    def refuse(self, u: UOp, language: str) -> NoReturn:
        """Raise CompileError for an instruction without code in the language."""
        raise CompileError(
            f"kernel {self.name}: {language} has no code for {u.op.name}",
            expected="an instruction that may follow stage 22",
            hint="run the stages of the pipeline first; the rules of stage 18 decompose the ops in Target.unsupported",
        )

    def parameters(self) -> tuple[tuple[Argument, ...], tuple[Variable, ...]]:
        """(buffers by slot, run-time values) after the last instruction. CompileError if a loop or branch is still open."""
        if self.open:
            raise CompileError(
                f"kernel {self.name}: the {self.open[-1].op.name} is never closed",
                expected="an End for each Range, an EndIf for each If",
            )
        return tuple(self.arguments[slot] for slot in sorted(self.arguments)), tuple(self.variables.values())
