"""Ops that work lane by lane, by their solver semantics."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import replace
from typing import Any

from morok.dialect import OpInfo
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.sequence_values import Sequences
from morok.prove.kinds import CONSTANT, CONSTANTS, INVALID, Made, Node
from morok.prove.meanings import solver_function
from morok.prove.semantics.term import Term, Unsupported, both, either, negation


class Pointwise(Sequences):
    """Applying ops to nodes."""

    def apply(self, info: OpInfo, operands: Seq[Any], result: str, matched: bool = False) -> Node:
        """A pointwise op, lane by lane; a scalar operand among vectors serves every lane. `matched`: it is the pattern's."""
        f = solver_function(info)
        nodes = [o if isinstance(o, Node) else self.as_node(o, result) for o in operands]
        self.agreed(info, nodes, result)
        lanes = self.width(info, nodes)
        extra: list[Any] = []
        d = self.world.dtype(result)
        if info.params and info.converts:  # a conversion
            extra.append(self.world.dtype(nodes[0].dtype))
        elif info.comparison:
            d = self.world.dtype(nodes[0].dtype)
        elif not info.params:
            extra.append(self.world.dtype(nodes[0].dtype))
        terms = []
        if self.world.stage != "eval":
            constant = nodes and all(n.made is not None and n.made.op in (CONSTANT, CONSTANTS) for n in nodes)
            self.world.stage = "constant" if constant else "run"
        for i in range(lanes):
            lane = [n.lanes[i] if len(n.lanes) > 1 else n.lanes[0] for n in nodes]
            made = f(self.world, d, *lane, *extra)
            relaxed = self.relaxed(info, d, nodes, i) if matched else None
            terms.append(made if relaxed is None else either_of(relaxed, made))
        node = Node(tuple(terms), result, Made(info.name, tuple(nodes)))
        if self.side == "pattern":
            for t in terms:
                self.assume_flags(result, t)
        return node

    def agreed(self, info: OpInfo, nodes: Seq[Node], result: str) -> None:
        """Operands have the dtypes that the op's entry says: its meaning takes that for granted."""
        known = {info.result: result} if info.result in info.params else {}
        for n, word in zip(nodes, info.params, strict=False):
            wanted = known.setdefault(word, n.dtype) if word in info.domains else word
            if n.dtype != wanted and not {n.dtype, wanted} & {"any", "void"}:
                raise Unsupported(f"{info.name} of {wanted} and {n.dtype}")

    def width(self, info: OpInfo, nodes: Seq[Node]) -> int:
        """The lanes of a result: those of its operands, which agree; a scalar condition, and what is the same in every lane,
        serve any number.
        """
        governing = [n for n, word in zip(nodes, info.params, strict=False) if word in info.domains] or nodes
        counts = {len(n.lanes) for n in governing if len(n.lanes) > 1 or not self.serves_any(n)}
        lanes = max(counts, default=1)
        if len(counts) > 1 or any(len(n.lanes) not in (1, lanes) for n in nodes):
            if self.side == "target":
                raise Unsupported(f"{info.name} of different numbers of lanes")  # no node can be made of these
            raise Inapplicable
        return lanes

    def serves_any(self, n: Node) -> bool:
        """True if a node of one lane is built with as many lanes as the operands beside it."""
        return n.made is not None and n.made.op in (CONSTANT, INVALID) and not n.made.fields

    def relaxed(self, info: OpInfo, d: Any, nodes: Seq[Node], lane: int) -> Term | None:
        """The reading of what is matched that `contract` and `arcp` permit: Add(Mul(a, b), c) as MulAcc(a, b, c), Fdiv(x, y) as
        Mul(x, Reciprocal(y)).
        """
        ops = self.rule.dialect.ops
        pick = [n.lanes[lane] if len(n.lanes) > 1 else n.lanes[0] for n in nodes]
        if "contract" in self.flags and info.name == "Add" and d.is_float:
            for product, other in ((0, 1), (1, 0)):
                made = nodes[product].made
                if made is not None and made.op == "Mul":
                    factors = [n.lanes[lane] if len(n.lanes) > 1 else n.lanes[0] for n in made.operands]
                    return solver_function(ops["MulAcc"])(self.world, d, *factors, pick[other])
        if "arcp" in self.flags and info.name == "Fdiv":
            inverse = solver_function(ops["Reciprocal"])(self.world, d, pick[1])
            return solver_function(ops["Mul"])(self.world, d, pick[0], inverse)
        return None

    def commutes(self, info: OpInfo, operands: Seq[Node]) -> None:
        """`Op[x, y]` matches in both orders: one proof serves both because the op's meaning does not tell them apart."""
        dtype = operands[0].dtype
        key = ("commutes", info.name, dtype)
        if key in self.world.known:
            return
        self.world.known[key] = True
        a, b = (self.world.variable(self.world.symbol("operand"), dtype) for _ in range(2))
        f = solver_function(info)
        d = self.world.dtype(dtype)
        ab, ba = f(self.world, d, a, b), f(self.world, d, b, a)
        result = "bool" if info.comparison else dtype
        claim = both(ab.defined == ba.defined, either(negation(ab.defined), self.said("equal", result, ba, ab)))
        self.out.laws[f"{info.name} commutes at {dtype}"] = claim


def either_of(relaxed: Term, made: Term) -> Term:
    """A result that may be either of two: what is matched goes away, and for it either will do."""
    return replace(relaxed, allows=lambda v: either(v == relaxed.value, v == made.value))
