"""The meaning of graphs, executed: the oracle of every pass and of every backend. Slow, and obviously right.

It goes through `OpDef.evaluate` for every pointwise op, at any stage: tensor-level graphs, kernels with multi-dimensional
or flat places, implicit reads or Loads, Reduce or accumulators, Unroll and Contract, vectors, gates, Invalid, workgroups
with shared memory and barriers, instruction lists.

Undefined behaviour raises UndefinedError where something observes it: a division by zero, an access outside a buffer, a
read of memory that nothing wrote, a store and a read of one element in no order, shared memory without a barrier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from morok.arguments import instance, mapping, several
from morok.errors import IRError
from morok.ir.interpret.graph_interpreter import Graph, execute_graph
from morok.ir.interpret.instructions import run_listing
from morok.ir.interpret.iteration import run_tasks
from morok.ir.interpret.lane_values import INVALID, Poison, known
from morok.ir.interpret.step_limit import Steps
from morok.ir.interpret.storage import Buffers, Memory
from morok.ir.interpret.tensor_interpreter import value_of
from morok.ir.uop import UOp


def evaluate(
    node: UOp, variables: Mapping[Any, Any] | None = None, buffers: Buffers | None = None, steps: int | None = None
) -> Any:
    """The value of a scalar or vector expression: a Python value, or a tuple of lanes; INVALID for an Invalid one.

    variables  a value by name, or by node (a DefineVar, an open Range, a Special); of a vector its lanes, or one value for all
    buffers    a list of elements by storage node or slot
    steps      the limit of lanes of nodes and of iterations that are computed, StepLimitError beyond; None: no limit
    Raises UndefinedError if the expression has no value.
    """
    lanes = tuple([known(v) for v in _lanes(node, variables, buffers, steps)])
    return lanes[0] if node.dtype.count == 1 else lanes


def separate_lanes(
    node: UOp, variables: Mapping[Any, Any] | None = None, buffers: Buffers | None = None, steps: int | None = None
) -> tuple[Any, ...]:
    """The lanes of a vector, None for an undefined one; UndefinedError if an undefined value decides more than lanes."""
    return tuple([None if v.__class__ is Poison else v for v in _lanes(node, variables, buffers, steps)])


def _lanes(node: UOp, variables: Mapping[Any, Any] | None, buffers: Buffers | None, steps: int | None) -> Sequence[Any]:
    graph = Graph([_checked_node(node)], Memory(_buffers(buffers)), _variable_values(variables), Steps(steps))
    lanes: Sequence[Any] = run_tasks(graph.result(node))[0]
    return lanes


def run(root: UOp, buffers: Buffers, variables: Mapping[Any, Any] | None = None, steps: int | None = None) -> None:
    """Execute the statements below `root` (a Sink, a Kernel, an End, a Store, ..), storing into the lists of `buffers`.

    `steps` as in `evaluate`.
    """
    execute_graph(_checked_node(root), _buffers(buffers), _variable_values(variables), Steps(steps))


def run_instructions(instructions: Sequence[UOp], buffers: Buffers, variables: Mapping[Any, Any] | None = None) -> None:
    """Execute a linear list of instructions, storing into the lists of `buffers`."""
    listed = [_checked_node(n) for n in several(instructions, "a program", "a list of instructions", IRError)]
    run_listing(listed, Memory(_buffers(buffers)), _variable_values(variables))


def tensor(
    root: UOp, buffers: Buffers, variables: Mapping[Any, Any] | None = None, steps: int | None = None
) -> tuple[list[Any], tuple[int, ...]]:
    """The elements, row-major, and the shape of a tensor-level graph; a scalar has shape (). `steps` as in `evaluate`."""
    whole = run_tasks(
        value_of(
            _checked_node(root), Graph([root], Memory(_buffers(buffers)), _variable_values(variables), Steps(steps))
        )
    )
    return [known(v) for v in whole.flat], whole.shape


def _checked_node(node: Any) -> UOp:
    return instance(node, UOp, "what is interpreted", "a node", IRError, "a tensor's graph is in its `uop`")


def _variable_values(variables: Any) -> Mapping[Any, Any]:
    return {} if variables is None else mapping(variables, "the variables", "values by name, or by node", IRError)


def _buffers(buffers: Any) -> Mapping[Any, list[Any]]:
    return {} if buffers is None else mapping(buffers, "the buffers", "lists of elements by node, or by slot", IRError)


__all__ = ["INVALID", "evaluate", "run", "run_instructions", "separate_lanes", "tensor"]
