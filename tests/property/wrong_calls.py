"""Calls of public functions with right and wrong arguments, drawn at random from their signatures: what ends in no error of ours.

    python tests/property/wrong_calls.py 50000 [seed]

A call is Python text, so that a finding can be tried by hand. Each line that is printed is a finding: an exception that is none
of ours, or a call that does not end. A process that dies leaves the call in the file that WRONG_CALLS_LAST names in the
environment.
"""

from __future__ import annotations

import contextlib
import faulthandler
import inspect
import os
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

import morok
import morok.dialect
from morok import Tensor, UOp, Variable, dtypes, nn
from morok.config import settings
from morok.described.function import Jitted
from morok.dialect import OperandInfo, OpInfo
from morok.errors import MorokError
from morok.ir.dtype import AddrSpace, DType, PtrType
from morok.ir.interpret import evaluate
from morok.ir.op import AxisType, Op
from morok.ir.verify import verify
from morok.optimize.strategy import OptimizerConfigBuilder
from morok.rewrite.library import groups
from morok.rewrite.ruleset import RuleSet
from morok.rewrite.tiers import SYMBOLIC_SIMPLE
from morok.runtime.buffer import Buffer
from morok.runtime.device import device
from morok.runtime.plan import ExecutionPlan

# after which a call is taken for one that never ends: many times what one takes on a busy machine
SECONDS: Final = 240.0
MEMORY: Final = 8 << 30  # addresses that the process may have
SMALL: Final = 1 << 12  # elements of what is computed
PACKAGE: Final = str(Path(morok.__file__).parent)

RULES: Final = groups(*SYMBOLIC_SIMPLE)


def _texts(lines: str) -> tuple[str, ...]:
    """What stands in these lines, two spaces or more between one and the next."""
    return tuple(re.split(r"\s{2,}", lines.strip()))


# Values as text: ANYTHING is wrong nearly everywhere, KINDS holds what is right for parameters, by name or by annotation.
ANYTHING: Final = _texts(r"""
    None  True  0  1  -1  2  3  7  2**31  2**63  2**64  -2**63  -2**64  10**400  0.0  -0.0  0.5  -1.5  1e300  float('nan')
    float('inf')  -float('inf')  1j  ''  'a'  'f32'  '\0'  '\ud800'  'sum'  b''  b'ab'  ()  []  {}  set()  (1,)  (0, 1)
    [1, 2]  (1, 2, 3)  (0, 0)  [[1, 2], [3]]  [[]]  (None,)  (-1, 2**64)  ('a', 1)  [1.5]  {1: 2}  {'a': 1}  {1}  deep()
    range(3)  (i for i in range(2))  iter([1])  slice(None)  slice('a', 2)  slice(0, 2**70, -1)  Ellipsis  NotImplemented
    object()  object  int  type  len  lambda *a: 1  lambda: None  np  np.float32(1.5)  np.int64(2)  np.int8(-1)
    np.uint64(2**64 - 1)  np.bool_(True)  np.complex64(1j)  np.float64('nan')  np.str_('a')  np.datetime64(0, 's')
    np.array(2)  np.array(1.5)  np.zeros(0)  np.ones((2, 0, 3))  np.ones((1, 2))  np.arange(3)  np.array([None, 'a'])
    np.array(['a', 'b'])  np.array([1j, 2])  np.array([1, 2], '>i4')  np.zeros(3, [('a', 'i4')])  np.float32  np.dtype('f4')
    np.dtype('O')  np.dtype('c8')  bytearray(b'ab')  memoryview(b'ab')  dtypes.f32  dtypes.index  dtypes.void  dtypes.image
    dtypes.bool  dtypes.f32.vec(4)  dtypes.f32.ptr(4)  dtypes  Tensor  Tensor([1.0, 2.0])  Tensor(1.5)  Tensor(2)
    Tensor(np.zeros((0, 2)))  Tensor([True])  Tensor(np.arange(6).reshape(2, 3))  Tensor([1.0], device='NULL')
    [Tensor([1.0]), 2]  (Tensor([1]), None)  [Tensor([1])]  Tensor.ones(N.bind(3))  Tensor.ones(N)  N  N.bind(2)  Variable  I
    F  I + 1  R  UOp.const(3)  (I, F)  UOp  Op  Op.Add  Op.Const  Op.Reshape  AxisType.Loop  AddrSpace.LOCAL  nn
    nn.Linear(2, 3)  nn.Linear  RULES  PLAN()  BUFFER()  morok.Opt(morok.OptOp.UPCAST, 0, 4)  morok.OptimizerConfig()  morok
    Exception  Exception()  Strange()  Path('.')  Path('nowhere')  print  float  bool  str
    __import__('fractions').Fraction(1, 3)  __import__('decimal').Decimal('1.5')  __import__('datetime').timedelta(1)
    __import__('enum').Enum('E', 'a').a  numbers  numbers()  later  later()  sum  map  Tensor.relu  np.add  ADD  JITTED  str.upper
    __import__('functools').partial(ADD)  staticmethod(len)  property(len)  frozenset({'contract'})  frozenset({1})  {'contract'}
    np.ma.array([1, 2], mask=[0, 1])  'f' * 300
    OPERAND  INFO  morok.Beam()  morok.OptimizerConfig.builder()  dtypes.i8.ptr().vec(2)  memoryview
""")

TENSORS: Final = _texts(r"""
    Tensor([1.0, 2.0, 3.0])  Tensor(np.arange(6, dtype=np.int32).reshape(2, 3))  Tensor(1.5)  Tensor(2)  Tensor([True, False])
    Tensor(np.ones((0, 3), np.float32))  Tensor(np.ones((2, 3, 4, 4), np.float32))  Tensor([1, 2], dtype='u8')
    Tensor.ones(2, 3)  Tensor([0.5, 1.5], dtype='bf16')  Tensor([0.5], dtype='f8e4m3')
    Tensor([[1.0, 2.0]], dtype='f64').permute(1, 0)  Tensor.ones(N.bind(3))  Tensor([3, 2], device='NULL')
    (Tensor([1.0, 2.0]) + 1)  Tensor([[1.0, 2.0], [3.0, 4.0]])
""")
NODES: Final = _texts(r"""
    I  F  R  B  UOp.const(3)  UOp.const(1.5, dtypes.f32)  UOp.const((1, 2), dtypes.i32)  UOp.var('j', dtypes.i32, 0, 9)  P
    P.index(R)  P.index(I, gate=B)  P.index(R).load()  V  F.reduce(Op.Add, R)  Tensor([1.0, 2.0]).uop  UOp.invalid_at()
    UOp.var('u', dtypes.u64)  P.index(R).store(F)  P.index(R).store(F).end(R)  UOp.sink(P.index(R).store(F).end(R))
""")
AXES: Final = ("0", "-1", "1", "None", "(0, 1)", "(0,)", "()")
NUMBERS: Final = ("0", "1", "2", "3", "0.5", "1e-5", "-1.0")
DTYPES: Final = ("dtypes.f32", "'i32'", "None", "np.float64", "dtypes.u8", "float", "bool", "dtypes.bf16", "dtypes.f16")
SCALARS: Final = (
    "dtypes.f32",
    "dtypes.i32",
    "dtypes.bool",
    "dtypes.index",
    "dtypes.f32.vec(2)",
    "dtypes.u64",
    "dtypes.f32.ptr(8)",
)

KINDS: Final[dict[str, tuple[str, ...]]] = {
    "other": (*TENSORS, "2", "1.5", "True", "[1.0, 2.0, 3.0]", "np.ones(3, np.float32)"),
    "tensors": ("[Tensor([1.0]), Tensor([2.0])]", "(Tensor([[1, 2]]),)", "[Tensor(1), Tensor(2)]"),
    "others": TENSORS,
    "operands": (*TENSORS, "2", "0.5"),
    "axes": (*AXES, "[0, 1]", "[1, 0]", "2", "([0], [0])"),
    "shape": ("2", "3", "(2, 3)", "6", "(3, 1)", "[2]", "N", "N.bind(2)", "(-1,)"),
    "repeats": ("2", "(2, 1)", "0"),
    "dtype": DTYPES,
    "device": ("None", "'CPU'", "'NULL'", "'CPU:1'", "'CUDA'"),
    "array": ("np.ones((2, 3), np.float32)", "np.arange(4)"),
    "source": ("np.ones(3, np.float32)", "0", "1"),
    "data": ("[1.0, 2.0]", "1", "np.ones((2, 2))", "[[1], [2]]", "[True]", "[Tensor([1]), 2]", "Tensor(1)"),
    "weight": ("Tensor(np.ones((4, 3, 2, 2), np.float32))", "Tensor([1.0, 2.0, 3.0])", "Tensor.ones(5, 3)", "None"),
    "key": ("0", "slice(0, 2)", "(0, slice(None))", "None", "Ellipsis", "Tensor([0, 1])", "[1, 0]", "np.array([0])"),
    "index": ("0", "slice(0, 2)"),
    "indices": ("Tensor([0, 1])", "[0]", "0", "np.array([[0, 1]])", "I", "R"),
    "values": (*TENSORS, "1", "[1, 2]", "0.5"),
    "mask": ("Tensor([True, False, True])", "Tensor([[True]])", "True"),
    "padding": ("[(1, 1)]", "[(1, 0), (0, 2)]", "((1, 1),)", "1", "(0, 1)"),
    "bounds": ("[(0, 1)]", "[(0, 1), (0, 2)]", "[None]", "[(1, 1), None]"),
    "sizes": ("1", "[1, 1]", "[2, 1]", "2"),
    "formula": ("'i->'", "'ij->ji'", "'i,i->i'", "'ij,jk->ik'", "'...i->...'", "'ii'", "'i,j'"),
    "reduction": ("'mean'", "'sum'", "'none'"),
    "approximate": ("'tanh'", "'none'"),
    "indexing": ("'xy'", "'ij'"),
    "side": ("'left'", "'right'"),
    "op": ("'sum'", "'max'", "Op.Add", "Op.Max", "Op.Reshape", "morok.OptOp.UPCAST"),
    "config": ("None", "morok.OptimizerConfig()", "morok.OptimizerConfig(strategy=morok.Unoptimized())"),
    "target": (*TENSORS, "Tensor([0, 1, 1])"),
    "opts": ("morok.Opt(morok.OptOp.UPCAST, 0, 2)",),
    "name": ("'a'", "'n'", "'x y'", "'CPU'", "'value'", "'lo'"),
    "spec": ("''", "'.2f'", "'d'"),
    "copy": ("None", "True", "False"),
    "x": TENSORS,
    "y": (*TENSORS, "0"),
    "k": ("1", "2", "0"),
    "n": ("1", "2", "4"),
    "layers": ("nn.Linear(3, 2)", "Tensor.relu", "nn.Sequential()"),
    "state": ("{}", "nn.Linear(3, 2).state_dict()", "{'weight': np.ones((2, 3), np.float32), 'bias': np.ones(2, np.float32)}"),
    "vars": ("None", "{}", "{'n': 2}"),
    "inputs": ("None", "{}", "{0: BUFFER()}"),
    "graph": (*NODES, "(I * 4 + 3).idiv(4)"),
    "rules": ("RULES", "RULES + RULES"),
    "path": ("'nowhere.rules'", "Path('.')", "'/dev/null'"),
    "text": ("'Add(x: i32, 1)'", "'x'", "'Add('", "''", "'Const(1): f32'", "'[0..4]'"),
    "what": ("'/dev/null'", "[]"),
    "context": ("None",),
    "stage": ("1", "8", "22"),
    "node": NODES,
    "nodes": ("[I, F]",),
    "program": ("UOp.sink(P.index(R).store(F).end(R))", "[I, R]"),
    "variables": ("None", "{'i': 1, 'f': 1.5}", "{I: 1}"),
    "buffers": ("None", "{0: [1.0] * 8}", "{P: [1.0] * 8}"),
    "unsupported": ("()", "{Op.Sqrt}"),
    "mapping": ("{}", "{I: I + 1}", "{F: F}"),
    "src": ("()", "(I, I)", "(F, F)", "(F,)", "(P, R)", "(F, R)", "(B, F, F)"),
    "arg": ("None", "0", "1", "True", "'a'", "(0,)", "Op.Add", "(Op.Add, (0,))", "((0, 2),)", "(0, AxisType.Loop, False)"),
    "info": ("None", "'k'"),
    "axis": (*AXES, "AxisType.Loop", "AxisType.Reduce"),
    "ranges": ("R", "UOp.range(3, 9)"),
    "deps": ("()", "(R,)", "F", "R"),
    "elements": ("F", "I"),
    "gate": ("None", "B"),
    "strategy": ("morok.Unoptimized()", "morok.Heuristics()", "[morok.Opt(morok.OptOp.UPCAST, 0, 2)]"),
    "buffer": ("BUFFER()",),
    "normalized_shape": ("3", "(2, 3)", "[3]"),
    "lanes": ("1", "2", "4"),
    "space": ("AddrSpace.LOCAL", "AddrSpace.GLOBAL"),
    "dialect": ("None",),
    "value": ("1", "2.5", "True", "F", "I", *TENSORS),
    "t": ("F", "I"),
    "f": ("F", "I"),
    "bool": ("True", "False"),
    "float": NUMBERS,
    "int": ("0", "1", "2", "3", "-1", "8"),
    "Sizes": ("1", "2", "(1, 2)", "(2, 2)"),
    "function": ("ADD", "BOTH", "BACK", "numbers", "later", "Strange", "nn.Linear(3, 2)", "Tensor.relu", "JITTED"),
    "args": (*TENSORS, "2", "0.5", "N.bind(3)", "np.ones(3, np.float32)", "[Tensor([1.0])]", "{'a': Tensor([1.0])}"),
    "flags": ("frozenset()", "frozenset({'contract'})", "{'nnan', 'nsz'}", "['arcp']"),
    "size": ("1", "4", "8", "-1"),
    "instance": ("None", "2"),
    "key_": ("'k'",),
    "fields": ("()", "('a',)", "['a', 'b']"),
    "params": ("()", "('T', 'T')"),
    "domains": ("{}", "{'T': ('f32',)}"),
    "result": ("''", "'T'"),
    "kind": ("''", "'binary'"),
    "position": ("'value'", "'order'"),
    "evaluate": ("None", "max"),
    "solver": ("''", "'a:b'"),
    "width": ("1", "4"),
    "threads": ("1", "2"),
    "UOp": NODES,
    "DType": SCALARS,
    "Self": TENSORS,
    "Tensor": TENSORS,
    "str": ("'a'", "''"),
}  # fmt: skip


class Strange:
    """An object that answers to every name, with None."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def __repr__(self) -> str:
        return "x" * 10_000


def numbers(*values: Any, **named: Any) -> Iterator[Any]:
    yield from values


async def later(*values: Any, **named: Any) -> Any:
    return values, named


class Users:
    """Functions of the user, which raise nothing of Python's: what they are given is added, or comes back."""

    @staticmethod
    def add(*values: Any, **named: Any) -> Any:
        return [v + 1 for v in (*values, *named.values()) if isinstance(v, Tensor)]

    @staticmethod
    def both(*values: Any, **named: Any) -> Any:
        tensors = [v for v in (*values, *named.values()) if isinstance(v, Tensor)]
        return tensors[0] * tensors[-1] if tensors else None

    @staticmethod
    def back(*values: Any, **named: Any) -> Any:
        return values, named


def deep() -> list[Any]:
    inner: list[Any] = []
    for _ in range(3000):
        inner = [inner]
    return inner


def buffer() -> Buffer:
    return Buffer(device("CPU"), dtypes.f32, 8).allocate()


def plan() -> ExecutionPlan:
    return (Tensor([1.0, 2.0, 3.0]) + 1).prepare()


R: Final = UOp.range(4, 0)
WORLD: Final[dict[str, Any]] = {
    "np": np,
    "morok": morok,
    "Tensor": Tensor,
    "UOp": UOp,
    "Op": Op,
    "dtypes": dtypes,
    "Variable": Variable,
    "nn": nn,
    "AxisType": AxisType,
    "AddrSpace": AddrSpace,
    "Path": Path,
    "Strange": Strange,
    "deep": deep,
    "RULES": RULES,
    "N": Variable("n", 1, 8),
    "I": UOp.var("i", dtypes.index, 0, 31),
    "F": UOp.var("f", dtypes.f32),
    "R": R,
    "B": UOp.var("b", dtypes.bool),
    "V": UOp.var("v", dtypes.f32.vec(4)),
    "ADD": Users.add,
    "BOTH": Users.both,
    "BACK": Users.back,
    "JITTED": morok.jit(Users.add),
    "TENSOR": Tensor([3.0, 1.0, 2.0]),
    "jitted": morok.jit,
    "numbers": numbers,
    "later": later,
    "OPERAND": OperandInfo("x"),
    "INFO": OpInfo("Add", "add", (OperandInfo("x"), OperandInfo("y"))),
    "OpInfo": OpInfo,
    "OperandInfo": OperandInfo,
    "PLAN": plan,
    "BUFFER": buffer,
    "Buffer": Buffer,
    "P": UOp.new(Op.DefineGlobal, (), 0, dtypes.f32.ptr(8)),
    "device": device,
    "settings": settings,
    "verify": verify,
    "evaluate": evaluate,
    "groups": groups,
    "find": morok.dialect.find,
    "register": morok.dialect.register,
    "verify_rules": getattr(morok.dialect, "verify", None),
}

LAYERS: Final = {
    "Linear": "nn.Linear(3, 2)",
    "Embedding": "nn.Embedding(5, 2)",
    "Conv2d": "nn.Conv2d(3, 4, 2)",
    "ConvTranspose2d": "nn.ConvTranspose2d(3, 4, 2)",
    "LayerNorm": "nn.LayerNorm(3)",
    "RMSNorm": "nn.RMSNorm(3)",
    "GroupNorm": "nn.GroupNorm(1, 3)",
    "BatchNorm": "nn.BatchNorm(3)",
    "Sequential": "nn.Sequential(nn.Linear(3, 2), Tensor.relu)",
    "Module": "nn.Module()",
}
# What is jitted, and then called as all else: functions, generators, coroutines, classes, methods, builtins, modules.
CALLED: Final = _texts("""
    ADD  BOTH  BACK  numbers  later  Strange  Tensor  nn.Linear  nn.Linear(3, 2)  sum  len  list  dict  zip  type  object
    Tensor.relu  map  range  repr  np.add  np.sum  __import__('functools').partial(ADD)  JITTED  TENSOR.max  TENSOR.numpy
    print  UOp.const
""")
# Objects whose methods are called, by class.
RECEIVERS: Final[dict[type, tuple[str, ...]]] = {
    Tensor: TENSORS,
    UOp: NODES,
    Variable: ("N",),
    RuleSet: ("RULES",),
    ExecutionPlan: ("PLAN()",),
    Buffer: ("BUFFER()",),
    DType: ("dtypes.f32", "dtypes.bool", "dtypes.f32.vec(4)"),
    PtrType: ("dtypes.f32.ptr(8)", "dtypes.i32.ptr()"),
    Jitted: tuple(f"jitted({f})" for f in CALLED),
    morok.Opt: ("morok.Opt(morok.OptOp.UPCAST, 0, 2)",),
    morok.OptimizerConfig: ("morok.OptimizerConfig()",),
    OptimizerConfigBuilder: ("morok.OptimizerConfig.builder()",),
    morok.Beam: ("morok.Beam(2)",),
    morok.Heuristics: ("morok.Heuristics()",),
    morok.Explicit: ("morok.Explicit([])",),
    OpInfo: ("INFO",),
    OperandInfo: ("OPERAND",),
    **{getattr(nn, name): (made,) for name, made in LAYERS.items()},
}
FUNCTIONS: Final = _texts("""
    Tensor  Variable  morok.parse  morok.simplify  morok.load_rules  morok.rewrite  morok.append_rules  morok.prove  settings
    morok.OptimizerConfig  morok.Beam  morok.Heuristics  morok.Explicit  morok.Opt  groups  device  Buffer  find  register
    verify  evaluate  morok.jit  morok.Unoptimized  OpInfo  OperandInfo
""") + tuple(f"nn.{name}" for name in LAYERS)
# What Python calls by itself.
LEFT_OUT: Final = frozenset(
    {
        "__init__",
        "__new__",
        "__setattr__",
        "__delattr__",
        "__getattr__",
        "__getstate__",
        "__setstate__",
        "__init_subclass__",
        "__reduce__",
    }
)
SETTINGS: Final = (
    *("noopt", "device", "fast_math", "threads", "beam_runs", "max_buffers", "l1_bytes", "devectorize", "k_vectorize", "nothing"),
)  # fmt: skip


class Target:
    """A function that is called: its text, for a method with `{}` for the object; and its parameters."""

    def __init__(self, text: str, parameters: Mapping[str, inspect.Parameter], receivers: tuple[str, ...] = ()) -> None:
        self.text = text
        self.receivers = receivers
        self.parameters = [p for p in parameters.values() if p.name not in ("self", "also")]


def _methods(cls: type, receivers: tuple[str, ...]) -> Iterator[Target]:
    for name in dir(cls):
        found = inspect.getattr_static(cls, name)
        plain = found.__func__ if isinstance(found, (staticmethod, classmethod)) else found
        if name in LEFT_OUT or (name.startswith("_") and not name.endswith("__")):
            continue
        if isinstance(found, property):
            yield Target(f"{{}}.{name}", {}, receivers)
        elif inspect.isfunction(plain) and plain.__module__.startswith("morok."):
            yield Target(f"getattr({{}}, {name!r})", inspect.signature(getattr(cls, name)).parameters, receivers)


def targets() -> list[Target]:
    found = [t for cls, receivers in RECEIVERS.items() for t in _methods(cls, receivers)]
    return found + [Target(name, inspect.signature(eval(name, WORLD)).parameters) for name in FUNCTIONS]


def _right(parameter: inspect.Parameter) -> tuple[str, ...]:
    """What is right for a parameter: by its name, or by its annotation; else anything."""
    said = str(parameter.annotation)
    by_type = [
        kind for kind in ("bool", "UOp", "Sizes", "DType", "Self", "Tensor") if said.startswith((kind, f"'{kind}"))
    ]
    if by_type and parameter.name not in ("key", "op", "graph"):
        return KINDS[by_type[0]]
    if parameter.name in KINDS:
        return KINDS[parameter.name]
    return KINDS["float" if "float" in said else "int" if "int" in said else "str" if said == "str" else "other"]


def drawn(rng: random.Random, target: Target) -> str:
    """One call: most often one argument is wrong, sometimes none or several."""
    given = [p for p in target.parameters if p.default is p.empty or rng.random() < 0.5]
    many = [p for p in target.parameters if p.kind is p.VAR_POSITIONAL]
    given = [p for p in given if p not in many]
    positional = [p for p in given if p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD]
    named = [p for p in given if p.kind is p.KEYWORD_ONLY]
    several = [many[0] for _ in range(rng.choice((0, 1, 1, 2, 3)))] if many else []
    slots = [*positional, *several, *named]
    wrong = (
        {i for i in range(len(slots)) if rng.random() < 1 / max(1, len(slots))}
        if rng.random() < 0.8
        else set(range(len(slots)))
    )

    def value(i: int) -> str:
        return rng.choice(ANYTHING if i in wrong else _right(slots[i]))

    here = {p.name for p in positional}
    skipped = False  # behind a parameter that is left out all others go by name
    parts: list[str] = []
    at = 0
    for p in target.parameters:
        if p.kind is p.VAR_POSITIONAL:
            parts += [value(at + k) for k in range(len(several))] if not skipped else []
            at += len(several)
        elif p.name in here:
            by_name = p.kind is not p.POSITIONAL_ONLY and (skipped or (not several and rng.random() < 0.2))
            skipped = skipped or by_name
            parts.append(f"{p.name}={value(at)}" if by_name else value(at))
            at += 1
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            skipped = True
        elif p in named:
            parts.append(f"{p.name}={value(at)}")
            at += 1
        elif p.kind is p.VAR_KEYWORD and target.text == "settings":
            parts += [f"{rng.choice(SETTINGS)}={rng.choice(ANYTHING)}"]
        elif p.kind is p.VAR_KEYWORD and target.receivers and rng.random() < 0.3:
            parts += [f"{name}={rng.choice(ANYTHING)}" for name in ("a", "b")[: rng.choice((1, 2))]]
    text = target.text.format(rng.choice(target.receivers)) if target.receivers else target.text
    return (
        text
        if not target.parameters and text.rpartition(".")[2].isidentifier() and target.receivers
        else f"{text}({', '.join(parts)})"
    )


class Endless(BaseException):
    """A call that has not ended in time."""


def _late(number: int, frame: Any) -> None:
    raise Endless


def _small(t: Tensor) -> bool:
    return all(isinstance(n.vmax if isinstance(n, UOp) else n, int) for n in t.shape) and all(
        int(np.prod([d if isinstance(d, int) else 64 for d in n.shape], dtype=object)) <= SMALL
        for n in t.uop.toposort()
    )


def use(result: Any, rng: random.Random) -> None:
    """What users do with a result: look at it, and sometimes compute it."""
    repr(result)
    if isinstance(result, UOp):
        _ = result.shape, result.ranges, result.vmin, result.vmax
    elif isinstance(result, (list, tuple)):
        for r in result[:3]:
            use(r, rng)
    elif isinstance(result, contextlib.AbstractContextManager):
        with result:
            pass
    elif isinstance(result, Tensor) and rng.random() < 0.1 and _small(result) and result.device == "CPU":
        result.numpy()


def _of_the_function(text: str, problem: BaseException) -> bool:
    """Whether a function that is jitted raises such an exception itself."""
    if "jitted(" not in text:
        return False
    try:
        eval(compile(text, "<call>", "eval"), {**WORLD, "jitted": lambda function: function})
    except Exception as other:
        return type(other) is type(problem)
    return False


def _of_python(problem: BaseException) -> bool:
    """Whether Python itself refused the call: too many arguments, too few, or a name that is no parameter."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != "<call>":
        trace = trace.tb_next
    return isinstance(problem, TypeError) and trace is not None and trace.tb_next is None and "argument" in str(problem)


def site(problem: BaseException) -> str:
    """An exception and the innermost line of ours that it passed."""
    frames = [f for f in traceback.extract_tb(problem.__traceback__) if f.filename.startswith(PACKAGE)]
    where = f"{frames[-1].filename[len(PACKAGE) + 1 :]}:{frames[-1].lineno}" if frames else "the call"
    return f"{type(problem).__name__} at {where}: {str(problem)[:150]}"


def tried(text: str, rng: random.Random) -> str | None:
    """What is wrong with one call; None if nothing is."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        use(eval(compile(text, "<call>", "eval"), WORLD), rng)
    except MorokError as error:
        if len(str(error)) > 4000:
            return f"an error of {len(str(error))} characters"
        return None
    except BaseException as problem:
        if _of_python(problem) or _of_the_function(text, problem):
            return None
        return site(problem)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return None


def run(count: int, seed: int, say: Callable[[str], None]) -> int:
    """Try so many calls; the number of findings, of which `say` hears."""
    rng = random.Random(seed)
    every = targets()
    last = os.environ.get("WRONG_CALLS_LAST")
    found = 0
    for _ in range(count):
        text = drawn(rng, rng.choice(every))
        if last:
            Path(last).write_text(text, errors="surrogateescape")
        problem = tried(text, rng)
        if problem is not None:
            found += 1
            say(f"{text}  # {problem}")
    return found


def main(arguments: list[str], run: Callable[[int, int, Callable[[str], None]], int] = run) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _late)
    warnings.simplefilter("ignore")
    faulthandler.enable()
    count, seed = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    with tempfile.TemporaryDirectory() as nowhere, contextlib.chdir(nowhere):
        found = run(count, seed, lambda line: print(line.encode("ascii", "backslashreplace").decode(), flush=True))
    print(f"{count} drawn, {found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
