"""The variables of a program: the replacements of its graph's Bind nodes, and the bound values.

A graph without writes is one step: a variable that it binds to two values is a mistake. What writes store is computed with the
variables as they were when the write was described, whenever it runs. So a graph with writes may hold several steps and bind a
variable to several values: each gets a variable of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from morok.caller import caller
from morok.errors import BindError
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.tensor.base import namesakes


def variables(order: Sequence[UOp]) -> tuple[dict[UOp, UOp], dict[str, int]]:
    """For each Bind among the nodes of a graph its variable, and the values of the variables by name.

    BindError where a graph without writes binds a variable to two values, or has two variables of one name.
    """
    chosen: dict[UOp, UOp] = {}
    values: dict[str, int] = {}
    owners: dict[str, UOp] = {}
    taken: set[str] = set()
    for node in order:
        if node.op is not Op.Bind:
            continue
        variable, value = node.src[0], int(node.src[1].arg)
        name: str = variable.arg[0]
        alone = owners.setdefault(name, variable) is variable
        if values.setdefault(name, value) != value or not alone:
            if not any(n.op is Op.Assign for n in order):
                what = f"the variable {name} is" if alone else f"different variables are called {name}, and"
                raise BindError(
                    f"{what} bound to {values[name]} and to {value} in one graph",
                    place=caller(),
                    expected="one value of a variable" if alone else "one variable of a name",
                    hint=namesakes((owners[name], variable)) or "realize() what needs the first one",
                )
            taken = taken or {n.arg[0] for n in order if n.op is Op.DefineVar}
            name = next(other for k in itertools.count(1) if (other := f"{variable.arg[0]}_{k}") not in taken)
            taken.add(name)
            values[name] = value
            variable = UOp.var(name, variable.dtype, *variable.arg[1:])
        chosen[node] = variable
    return chosen, values
