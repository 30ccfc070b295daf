"""Calls of every public name with right and wrong arguments, as Python text."""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

import morok
import morok.dialect
import morok.errors
from morok import Tensor, UOp, Variable, dtypes, nn
from morok.rewrite.library import groups

WORLD: Final[dict[str, Any]] = {
    "morok": morok,
    "dialect": morok.dialect,
    "groups": groups,
    "np": np,
    "nn": nn,
    "Tensor": Tensor,
    "UOp": UOp,
    "Variable": Variable,
    "dtypes": dtypes,
    "T": Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "V": Tensor([3, 1, 2]),
    "X": UOp.var("x", dtypes.index, 0, 31),
    "F": UOp.var("f", dtypes.f32),
    "B": UOp.var("b", dtypes.bool),
    "RULES": groups("boolean"),
}
# Objects and classes of which every public name is asked for.
RECEIVERS: Final = (
    "T",
    "V",
    "Tensor",
    "X",
    "F",
    "B",
    "UOp",
    "Variable('n', 1, 8)",
    "Variable('n', 1, 8).bind(3)",
    "dtypes.f32",
    "dtypes.i8.vec(4)",
    "dtypes.f32.ptr(8)",
    "RULES",
    "(V + 1).prepare()",
    "V.kernels()",
    "nn.Linear(3, 2)",
    "nn.Conv2d(3, 4, 2)",
    "nn.LayerNorm(3)",
    "nn.Embedding(5, 2)",
    "morok.OptimizerConfig()",
    "morok.OptimizerConfig.builder()",
    "morok.Opt(morok.OptOp.UPCAST, 0, 4)",
    "morok.jit(Tensor.relu)",
)
ARGUMENTS: Final = (
    "",
    "None",
    "0",
    "-1",
    "5",
    "2.5",
    "'a'",
    "'f32'",
    "()",
    "(0, 1)",
    "[[1], [2, 3]]",
    "object",
    "T",
    "V",
    "X",
    "dtypes.i32",
    "np.ones((2, 3))",
    "slice(0, 2)",
    "2**70",
    "float('nan')",
    "0, 1",
    "V, V",
    "T, 'a'",
    "1, None, 2",
    "nothing=1",
)
FUNCTIONS: Final = (
    *(f"morok.{name}" for name in morok.__all__ if name not in ("Tensor", "UOp", "prove")),
    *(
        "Tensor",
        "UOp",
        "Variable",
        "groups",
        "dialect.OpInfo",
        "dialect.OperandInfo",
        "dialect.find",
        "dialect.register",
    ),
    *("nn.Linear", "nn.Conv2d", "nn.LayerNorm", "nn.Embedding", "nn.Sequential", "nn.GroupNorm", "nn.BatchNorm"),
)
SETTINGS: Final = (
    *(
        "noopt",
        "beam",
        "threads",
        "device",
        "fast_math",
        "max_buffers",
        "debug",
        "opts",
        "l1_bytes",
        "cache_dir",
        "nothing",
    ),
)
# What has no name to call: mistakes in operators, settings, names and files.
OTHERS: Final = (
    "T + V",
    "T @ T",
    "T[5]",
    "T[0, 0, 0]",
    "T['a']",
    "T[::0]",
    "T[None, ..., ...]",
    "T < 'a'",
    "T // 0",
    "V + 1.5",
    "V / 'a'",
    "bool(T)",
    "int(T)",
    "len(T)",
    "list(V)",
    "float(V)",
    "hash(T) == hash(T)",
    "repr(T)",
    "str(V)",
    "T.__setitem__(0, 'a')",
    "T.__setitem__(7, 1)",
    "T.__setitem__((0, 0, 0), 1)",
    "np.asarray(T)",
    "X + F",
    "X + 2.5",
    "F // 2",
    "X @ 1",
    "UOp.var('a', 'f32')",
    "UOp.var('a', dtypes.index, 3, 1)",
    "UOp.const('a', dtypes.i32)",
    "UOp.const(300, dtypes.i8)",
    "morok.nothing",
    "morok.parse('Add(')",
    "morok.parse('Add(x: i32)')",
    "morok.parse('Add(x: i32, y: f32)')",
    "morok.parse('Nothing(x: i32)')",
    "morok.parse('Add(x: i32, x: i64)')",
    "morok.parse('Idiv(x: i32, 0)')",
    "morok.load_rules('nowhere.rules')",
    "morok.load_rules('.')",
    "morok.load_rules('README.md')",
    "morok.load_rules('tests/prove/false.rules', prove=False)",
    "morok.load_rules('examples/foreign.rules')",
    "morok.prove('nowhere.rules')",
    "morok.rewrite(X, None)",
    "morok.rewrite(X, groups('split_store'))",
    "groups()",
    "groups('bolean')",
    "RULES['nothing']",
    "RULES['and_tru']",
    "RULES + 1",
    "morok.append_rules(40, RULES).__enter__()",
    "morok.append_rules('symbolik', RULES).__enter__()",
    "Tensor([1.0], device='GPU')",
    "Tensor([1.0], dtype='f33')",
    "Tensor([[1], [2, 3]])",
    "Tensor(['a'])",
    "Tensor([1, 2]).kernels(device='GPU')",
    "Tensor.arange(3, 0)",
    "Tensor.all_reduce([T, V])",
    "Tensor.concat([T, V])",
    "Tensor.einsum('ij,jk', T, T)",
    "dtypes.nothing",
    "dtypes.f32.vec(0)",
    *(
        f"morok.settings({name}={value!r}).__enter__()"
        for name in SETTINGS
        for value in ("a", -7, None, [], 1.5)
    ),
)  # fmt: skip
# times, places, numbers
LEFT_OUT: Final = frozenset({"serial", "memo", "origin", "provenance", "execute", "benchmark", "profile"})


def public(value: Any) -> list[str]:
    return [name for name in dir(value) if not name.startswith("_") and name not in LEFT_OUT]


def calls() -> Iterator[str]:
    """Every call, as text over WORLD; a name that is no function is asked for only."""
    yield from OTHERS
    for receiver in RECEIVERS:
        held = eval(receiver, WORLD)
        for name in public(held):
            try:
                callable_ = callable(getattr(held, name))
            except Exception:  # what asking for it ends in is recorded
                callable_ = False
            member = f"getattr({receiver}, {name!r})" if keyword.iskeyword(name) else f"{receiver}.{name}"
            yield from (f"{member}({a})" for a in ARGUMENTS) if callable_ else (member,)
    for function in FUNCTIONS:
        yield from (f"{function}({a})" for a in ARGUMENTS)
