"""Generated expressions that read a dialect's nodes, by its code templates if it has them, else by its methods."""

from __future__ import annotations

import ast

from morok.dialect import Dialect, built_in
from morok.dsl.lane_count import counts_lanes
from morok.dsl.match.code import Code


class Access:
    """The expressions that read nodes, and the names of a dialect's ops and dtypes.

    each          the variable of a comprehension over operands
    counts_lanes  True if the dialect tells lanes; without it nodes have one
    """

    def __init__(self, dialect: Dialect, code: Code) -> None:
        self.dialect = dialect
        self.code = code
        self.inline = dialect.inline
        self.equal = "is" if built_in(dialect) else "=="  # its op keys and dtypes are single objects, as its nodes are
        self.methods = code.name("_d")
        self.each = code.name("_o")
        self.counts_lanes = counts_lanes(dialect)

    def method(self, name: str, *arguments: ast.expr) -> ast.expr:
        return self.code.call(self.code.attribute(self.methods, name), *arguments)

    def _read(self, template: str, method: str, n: ast.expr) -> ast.expr:
        text = self.inline.get(template)
        return self.method(method, n) if text is None else self.code.filled(text, n=n)

    def opkey(self, n: ast.expr) -> ast.expr:
        return self._read("opkey", "opkey", n)

    def operands(self, n: ast.expr) -> ast.expr:
        return self._read("operands", "operands", n)

    def operand(self, n: ast.expr, index: int) -> ast.expr:
        return self.code.item(self.operands(n), index)

    def count(self, n: ast.expr) -> ast.expr:
        """The number of a node's operands."""
        return self.code.call("len", self.operands(n))

    def type(self, n: ast.expr) -> ast.expr:
        return self._read("type", "type", n)

    def scalar(self, n: ast.expr) -> ast.expr:
        """The dtype of one lane."""
        return self.code.filled(self.inline["scalar"], n=n) if "scalar" in self.inline else self.type(n)

    def lanes(self, n: ast.expr) -> ast.expr:
        """The number of lanes, as `lane_count` has it where there is no template."""
        if "lanes" in self.inline:
            return self.code.filled(self.inline["lanes"], n=n)
        if "lanes" in self.dialect.facts:
            return self.code.call("F_lanes", n)
        return self.code.call("len", self.method("lanes_of", n)) if self.counts_lanes else self.code.constant(1)

    def value(self, n: ast.expr) -> ast.expr:
        return self._read("const_value", "const_value", n)

    def same(self, a: ast.expr, b: ast.expr) -> ast.expr:
        text = self.inline.get("same")
        return self.method("same", a, b) if text is None else self.code.filled(text, a=a, b=b)

    def field(self, op: str, n: ast.expr, name: str) -> ast.expr:
        text = self.inline.get(f"attr.{op}.{name}") or self.inline.get(f"attr.{name}")
        return self.method("attr", n, self.code.constant(name)) if text is None else self.code.filled(text, n=n)

    def asked(self, template: str, n: ast.expr) -> ast.expr:
        """A code template of the dialect, filled with a node."""
        return self.code.filled(self.inline[template], n=n)

    @property
    def const_op(self) -> str | None:
        return self.inline.get("const_op")

    def is_op(self, n: ast.expr, op: str) -> ast.expr:
        return self.code.compare(self.opkey(n), self.equal, self.key(op))

    def is_const(self, n: ast.expr) -> ast.expr:
        return self.holds_number(n) if self.const_op is None else self.is_op(n, self.const_op)

    def holds_number(self, n: ast.expr) -> ast.expr:
        """True if a node is a constant whose value is a number of Python's own, as those of proofs are: others may wrap."""
        return self.code.compare(self.code.attribute(self.value(n), "__class__"), "in", self.code.name("NUMBERS"))

    def alike(self, a: ast.expr, b: ast.expr) -> ast.expr:
        """True if two dtypes, or two ops, are the same."""
        return self.code.compare(a, self.equal, b)

    def key(self, op: str) -> ast.expr:
        return self.code.name(f"K_{op}")

    def dtype(self, name: str) -> ast.expr:
        return self.code.name(f"D_{name}")

    def vector(self, element: ast.expr, lanes: ast.expr) -> ast.expr:
        return self.code.filled(self.inline["vector"], d=element, k=lanes)
