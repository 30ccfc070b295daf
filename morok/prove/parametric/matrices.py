"""Products of small matrices at every size: of what they add to, each lane is looked at; of the product itself nothing is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from morok.prove import smt
from morok.prove.kinds import Parts
from morok.prove.parametric.laws import VALUE
from morok.prove.parametric.op_functions import function, name_of
from morok.prove.parametric.polynomials import INT, Integer
from morok.prove.parametric.rule_values import Vector
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import Expr
from morok.prove.symbol import Symbol

if TYPE_CHECKING:
    from morok.prove.parametric.reading import Reading


def product(r: Reading, op: str, parts: Parts, at: Any) -> Vector:
    """To each lane of the third operand it adds some function of all lanes of the other two: one for one layout and number of
    lanes.
    """
    a, b, c = (r.one(parts[name]) for name in ("a", "b", "c"))
    layout = name_of(parts["meta"])
    if not layout or a.uniform or b.uniform or c.uniform:
        raise Unsupported("a product without a layout, or of constants of any number of lanes")
    dtypes = [r.element(parts[name]) for name in ("a", "b", "c")]
    f = smt.Function(Symbol("product", r.symbol(layout), *dtypes), VALUE, VALUE, INT, INT, VALUE)
    add = function(r, "Add", dtypes[2:] * 2)

    def every(x: Vector, e: Expr) -> Expr:
        return r.setting.tuple_of(x.count, lambda k: x.at(e, k))

    def lane_of(e: Expr, lane: Integer) -> Expr:
        return add(c.at(e, lane), f(every(a, e), every(b, e), c.count.term, lane.term))

    return Vector(c.count, lane_of)
