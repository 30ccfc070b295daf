"""Expression text: graphs in the notation of rules, printed and parsed (`parse(u.text()) is u`).

    %1 = Mul(x: i32, 3); Add(%1, %1)

Every node with two uses that is not a leaf is named once, in front, so that the text is linear in the graph. A constant
is bare where its position requires its dtype, and `Const(3, i8)` elsewhere. Operands come first, then the fields of the
op in order; a field with a default is named if it has another value (`renumbered=true`). A dtype that the operands do
not determine follows a colon: `Load(Index(b, i)): f32x4`.

Limits: MAX_TEXT characters, MAX_DEPTH open brackets, MAX_DIGITS digits a number, MAX_LANES lanes.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import re
from typing import Any, Final

from morok import handed
from morok.ir import number
from morok.ir.dtype import BY_NAME, FLOAT_FORMAT, AddrSpace, DType, dtypes
from morok.ir.op import AxisType, Op, OpDef
from morok.ir.uop import UOp

MAX_TEXT: Final = 1 << 26
MAX_DEPTH: Final = 1_000_000
MAX_DIGITS: Final = 4000
MAX_LANES: Final = 1 << 16

# Fields left out when they have this value, and named otherwise.
USUAL: Final[dict[Op, dict[str, Any]]] = {
    Op.Range: {"renumbered": False},
    Op.Sink: {"info": None},
    Op.Contiguous: {"opts": None},
}
# Ops whose fields are not printed as arguments: Index has `gate=`; variables and constants have notations of their own.
_UNSAID: Final = frozenset({Op.Index, Op.DefineVar, Op.Const, Op.VConst})
_WITH_TYPE: Final = frozenset({Op.Cast, Op.Bitcast})  # the dtype is the last argument

WORDS: Final[dict[str, Any]] = {
    **{o.name: o for o in Op},
    **{a.name: a for a in AxisType},
    **{f"AddrSpace.{s.name}": s for s in AddrSpace},
    "None": None,
}
RESERVED: Final = frozenset({*WORDS, *BY_NAME, "true", "false", "inf", "nan", "ptr"})
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")
_VECTOR_NAME: Final = re.compile(rf"(?:{'|'.join(BY_NAME)})x\d+\Z")


def _is_plain(name: str) -> bool:
    return _PLAIN_NAME.match(name) is not None and name not in RESERVED and _VECTOR_NAME.match(name) is None


# The dtype that a position requires of a bare constant, for printing and for parsing.


def default_dtype(value: Any) -> DType:
    """The dtype of a bare constant where its position requires none."""
    return dtypes.bool if isinstance(value, bool) else dtypes.index if isinstance(value, int) else dtypes.f32


def required(entry: OpDef, known: list[DType | None], values: list[Any], own: DType | None) -> list[DType]:
    """The dtype of each operand. `known` has None for bare constants, whose values are in `values`; `own` is the node's,
    where it is stated."""
    out = [default_dtype(v) if d is None else d for d, v in zip(known, values, strict=True)]
    op = entry.op
    if op is Op.Where:
        group = [i for i in (1, 2) if i < len(out)]
        if out and known[0] is None:
            out[0] = dtypes.bool
    elif entry.signature is not None and op is not Op.Cast:
        group = list(range(len(out)))
    elif op in (Op.Vectorize, Op.Store, Op.Load, Op.Bind, Op.Assign):
        group = list(range(len(out) if op is Op.Vectorize else 2))[: len(out)]
        if own is not None and op is Op.Load and len(out) == 2 and known[1] is None:
            out[1] = own
            return out
    else:
        return out
    dtype = next((d for i in group if (d := known[i]) is not None), None)
    if dtype is None and group:
        dtype = out[group[0]]
    for i in group:
        if known[i] is None and dtype is not None:
            out[i] = dtype
    return out


# Printing.


def literal(d: DType, v: Any) -> str:
    """A value of scalar dtype `d` as text: the shortest decimal that rounds to it."""
    if d.is_bool:
        return "true" if v else "false"
    if not d.is_float:
        return str(v)
    if v != v:
        return "nan"
    if math.isinf(v):
        return "inf" if v > 0 else "-inf"
    digits = FLOAT_FORMAT[d][0] * 3 // 10 + 3
    text = repr(v)
    for n in range(1, digits):
        short = repr(float(f"{v:.{n}g}"))
        if number.key(d, number.coerce(d, float(short))) == number.key(d, v):
            text = short
            break
    return text


def argument(v: Any) -> str:
    """A field's value as text. Values of classes outside the notation appear in backquotes, and cannot be parsed."""
    if v is None or isinstance(v, (Op, AxisType)):
        return "None" if v is None else v.name
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, int):
        return str(v)
    if isinstance(v, float):
        return literal(dtypes.f64, v)
    if isinstance(v, str):
        return json.dumps(v)
    if isinstance(v, AddrSpace):
        return f"AddrSpace.{v.name}"
    if isinstance(v, DType):
        return v.name
    if isinstance(v, tuple):
        return "[" + ", ".join([argument(x) for x in v]) + "]"
    if isinstance(v, UOp):
        return f"`{v.op.name}`"
    if isinstance(v, enum.Enum) and class_named(type(v).__name__) is type(v):
        return f"{type(v).__name__}.{v.name}"
    if dataclasses.is_dataclass(v) and not isinstance(v, type) and class_named(type(v).__name__) is type(v):
        fields = [f.name + "=" + argument(getattr(v, f.name)) for f in dataclasses.fields(v)]
        return f"{type(v).__name__}({', '.join(fields)})"
    return "`" + repr(v).replace("`", "'") + "`"


def register(cls: type) -> type:
    """Let arguments of `cls` be printed and parsed: a frozen dataclass as `Name(field=value, ..)`, an enum as `Name.MEMBER`."""
    _registered[cls.__name__] = cls
    return cls


_registered: Final[dict[str, type]] = {}


def class_named(name: str) -> type | None:
    """The class of an argument by its name in text: registered, or handed in by the package (morok/__init__); None if neither."""
    found = _registered.get(name)
    if found is None and handed.home(f"argument {name}"):
        given: type = handed.part(f"argument {name}")
        return given
    return found


def declaration(var: UOp) -> str:
    """`x: index[0..=31]`; the bounds only where they are narrower than the dtype."""
    name, lo, hi = var.arg
    if not _is_plain(name):
        return f"DefineVar({json.dumps(name)}, {argument(lo)}, {argument(hi)}): {var.dtype.name}"
    if (lo, hi) == (var.dtype.min, var.dtype.max):
        return f"{name}: {var.dtype.name}"
    return f"{name}: {var.dtype.name}[{argument(lo)}..={argument(hi)}]"


def _bare_text(const: UOp) -> str:
    return literal(const.dtype.scalar(), const.arg)


def _const_text(const: UOp) -> str:
    return f"Const({_bare_text(const)}, {const.dtype.name})"


class _Printer:
    def __init__(self, root: UOp) -> None:
        self.order = root.toposort()
        self.root = root
        uses: dict[UOp, int] = {}
        variables: dict[str, set[UOp]] = {}
        for node in self.order:
            if node.op is Op.DefineVar:
                variables.setdefault(node.arg[0], set()).add(node)
            for s in node.src:
                uses[s] = uses.get(s, 0) + 1
        shared = [n for n in self.order if n.src and uses.get(n, 0) > 1]
        self.names = {n: f"%{i}" for i, n in enumerate(shared, 1)}
        self.shared = shared
        # names that several variables have: every use of one is printed as its declaration
        self.ambiguous = {n for n, vs in variables.items() if len(vs) > 1}
        self.declared: set[UOp] = set()

    def text(self) -> str:
        out: list[str] = []
        for node in self.shared:
            out.append(f"{self.names[node]} = ")
            self._write(node, out)
            out.append("; ")
        name = self.names.get(self.root)
        if name is None:
            self._write(self.root, out)
        else:
            out.append(name)
        return "".join(out)

    def _write(self, start: UOp, out: list[str]) -> None:
        stack: list[str | UOp] = list(reversed(self._parts(start)))
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                out.append(item)
            elif (name := self.names.get(item)) is not None:
                out.append(name)
            else:
                stack.extend(reversed(self._parts(item)))

    def _parts(self, node: UOp) -> list[str | UOp]:
        op = node.op
        if op is Op.DefineVar:
            name = node.arg[0]
            if node in self.declared and name not in self.ambiguous and _is_plain(name):
                return [name]
            self.declared.add(node)
            return [declaration(node)]
        if op is Op.Const:
            return [_bare_text(node) if node.dtype is default_dtype(node.arg) else _const_text(node)]
        if op is Op.VConst:
            scalar = node.dtype.scalar()
            return [f"VConst([{', '.join([literal(scalar, v) for v in node.arg])}], {node.dtype.name})"]
        entry = node.entry
        wanted = _stated(node)
        parts: list[str | UOp] = []
        operands = node.src
        bare = self._bare(node, entry, wanted)
        for i, s in enumerate(operands):
            parts.append(", ")
            if op is Op.Index and node.arg and i == len(operands) - 1:
                parts.append("gate=")
            parts.append(s if s.op is not Op.Const else _bare_text(s) if bare[i] else _const_text(s))
        if op not in _UNSAID and entry.fields:
            values = (node.arg,) if len(entry.fields) == 1 else node.arg
            usual = USUAL.get(op, {})
            for f, v in zip(entry.fields, values, strict=True):
                if f not in usual:
                    parts.append(", " + argument(v))
                elif v != usual[f]:
                    parts.append(f", {f}={argument(v)}")
        if op in _WITH_TYPE:
            parts.append(", " + node.dtype.name)
        if not parts:
            parts = [op.name if op is Op.Invalid else f"{op.name}()"]
        else:
            first = parts[0]
            assert isinstance(first, str)
            parts[0] = f"{op.name}({first.removeprefix(', ')}"
            parts.append(")")
        if wanted is not None and op not in _WITH_TYPE:
            parts.append(f": {wanted.name}")
        return parts

    def _bare(self, node: UOp, entry: OpDef, own: DType | None) -> list[bool]:
        """The operands that are constants whose position gives them the right dtype."""
        src = node.src
        is_const = [s.op is Op.Const for s in src]
        if True not in is_const:
            return is_const
        values = [s.arg if c else None for s, c in zip(src, is_const, strict=True)]
        bare = is_const
        while True:
            known = [None if b else s.dtype for s, b in zip(src, bare, strict=True)]
            got = required(entry, known, values, own)
            wrong = [i for i, (b, s) in enumerate(zip(bare, src, strict=True)) if b and got[i] is not s.dtype]
            if not wrong:
                return bare
            bare = list(bare)
            bare[wrong[0]] = False


def _stated(node: UOp) -> DType | None:
    """The dtype of `node` where text must state it, because its operands and fields do not determine it."""
    entry = node.entry
    if entry.typing is None:
        return None
    try:
        inferred = entry.typing(node.src, node.arg, None)
    except (TypeError, ValueError):
        return node.dtype
    return None if inferred is node.dtype else node.dtype


def dump(root: UOp) -> str:
    """`root` as text, from which `parse` gives it back. Linear in the graph."""
    return _Printer(root).text()
