"""The actions after a match: clauses, helpers and target of a rule, as Python text."""

from __future__ import annotations

from collections.abc import Sequence

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Sort
from morok.dsl.emit_extents import Within
from morok.dsl.emit_names import Tail, bare, helper_name, node_name, value_name
from morok.dsl.extent import Limits
from morok.dsl.rows import Variant

# In generated code: the exceptions by which arithmetic says that it has no value.
_FAILURES = "_failures"
# How a helper's result is seen to be of the kind that its declaration says.
_RESULTS = {
    "const": "{0}.__class__ is int",
    "int": "{0}.__class__ is int",
    "bool": "{0}.__class__ is bool",
    "seq": "isinstance({0}, (tuple, list))",
}


class Emitter(Within):
    """Emits the tail of row `order` of the rule that a matcher knows by `number`; `limits`, where it is told what to do beyond
    the extents of its proof.
    """

    def __init__(self, rule: CheckedRule, row: Variant, number: int, order: int, limits: Limits | None = None) -> None:
        super().__init__(rule, row, number, order)
        self.limits = limits
        if limits is not None and limits.declines:
            self.most = {e.what: e.most for e in limits.extents if e.what in ("shift", "power")}
        self.depth = 0
        self.counting = False  # the line that makes the budget is there

    def line(self, text: str) -> None:
        self.tail.lines.append("    " * self.depth + text)

    def emit(self) -> Tail:
        for clause in self.rule.syntax.clauses:
            if isinstance(clause, S.If):
                self.guard(clause.condition)
            else:
                self.let(clause)
        self.target()
        if self.row.gaps:
            self.tail.certain = False  # there may be no place for what stands behind a sequence
        return self.tail

    def guard(self, condition: S.Expr) -> None:
        self.tail.certain = False
        self.raises = False
        code = self.condition(condition)
        self.count_steps()
        if self.raises:
            test = self.temporary()
            self.line("try:")
            self.line(f"    {test} = {code}")
            self.line(f"except {_FAILURES}:")
            self.line(f"    {test} = False")
            code = test
        self.line(f"if {bare(code)}:")
        self.depth += 1

    def let(self, clause: S.Let) -> None:
        self.raises = False
        value = clause.value
        partial = isinstance(value, S.ECall) and value.name in self.rule.externs and self.rule.externs[value.name].partial
        code = self.any(value)
        self.count_steps()
        names = [f"u_{name}" for name in clause.names]
        target = names[0] if len(names) == 1 else f"({', '.join(names)})"
        if partial:
            self.tail.certain = False
            result = self.temporary()
            if self.raises:
                self.line("try:")
                self.line(f"    {result} = {code}")
                self.line(f"except {_FAILURES}:")
                self.line(f"    {result} = None")
            else:
                self.line(f"{result} = {code}")
            self.line(f"if {result} is not None:")
            self.depth += 1
            self.line(f"{target} = {result}")
        elif self.raises:
            self.tail.certain = False
            self.line("try:")
            self.line(f"    {target} = {bare(code)}")
            self.line(f"except {_FAILURES}:")
            self.line("    pass")
            self.line("else:")
            self.depth += 1
        else:
            self.line(f"{target} = {bare(code)}")
        for name, local in zip(clause.names, names, strict=True):
            self.locals[name] = local
        if isinstance(value, S.ECall) and value.name in self.rule.externs:
            self.results(self.rule.externs[value.name], clause.names, names)

    def results(self, extern: S.Extern, names: Sequence[str], locals_: Sequence[str]) -> None:
        """Tests that a helper's results are as declared."""
        for p, name, local in zip(extern.results, names, locals_, strict=True):
            kind = p.type.name if isinstance(p.type, S.TName) else ""
            binding = self.rule.bindings.get(name)
            is_node = binding is not None and binding.sort in (Sort.NODE, Sort.NODES)
            if kind not in _RESULTS or name.startswith("_") or is_node:
                continue
            self.tail.certain = False
            self.line(f"if {_RESULTS[kind].format(local)}:")
            self.depth += 1

    def count_steps(self) -> None:
        """The line that the first clause or target needs which goes over a sequence: a rule has one budget."""
        if self.needs_steps and not self.counting:
            self.counting = True
            self.line("steps = _Steps()")

    def target(self) -> None:
        self.raises = False
        code = self.node(self.rule.syntax.target)
        self.count_steps()
        if self.limits is not None:
            self.limited(code, self.limits)
            return
        root = self.node_at(())
        operand = code in {node_name(p) for p in self.tail.nodes if p}
        if operand:  # never the node itself
            if hasattr(self.dialect, "keep"):
                self.line(f"_keep({root}, {code}, {self.rule.name!r})")
            self.line(f"return {code}, {self.number}")
            return
        made = code not in self.locals.values()
        derive = [f"_derive({root}, {self.rule.name!r})"] if made and hasattr(self.dialect, "derive") else []
        if self._is_new() and not self.raises and not self.helped():
            for text in derive:
                self.line(text)
            self.line(f"return {bare(code)}, {self.number}")
            return
        self.tail.certain = False
        result = self.temporary()
        lines = [*derive, f"{result} = {bare(code)}"]
        if self.raises:
            self.line("try:")
            for text in lines:
                self.line("    " + text)
            self.line(f"except {_FAILURES}:")
            self.line("    pass")
            self.line("else:")
            self.depth += 1
        else:
            for text in lines:
                self.line(text)
        self.line(f"if not ({self._is_root(result)}){self.of_its_type(result)}:")
        if not made and hasattr(self.dialect, "keep"):
            self.line(f"    _keep({root}, {result}, {self.rule.name!r})")
        self.line(f"    return {result}, {self.number}")

    def limited(self, code: str, limits: Limits) -> None:
        """The target, where the match lies within the extents of the proof; elsewhere where an instance check lets it pass."""
        self.tail.certain = False
        root = self.node_at(())
        made = code not in {node_name(p) for p in self.tail.nodes} and code not in self.locals.values()
        within, result = self.temporary(), self.temporary()
        self.line(f"{within} = {' and '.join(self.within(e) for e in limits.extents)}")
        self.line("try:")
        if made and hasattr(self.dialect, "derive"):
            self.line(f"    _derive({root}, {self.rule.name!r})")
        self.line(f"    {result} = {bare(code)}")
        # beyond its extent a rule that is false may build what is no node at all
        self.line(f"except {_FAILURES if not limits.declines else f'({_FAILURES} if {within} else Exception)'}:")
        self.line("    pass")
        self.line("else:")
        self.depth += 1
        check = "_stands_in" if limits.declines else "_not_refuted"
        checked = f"{check}({root}, {result}, {self.rule.name!r}, {self.leaves()})"
        self.line(f"if not ({self.access.same(result, root)}){self.of_its_type(result)} and ({within} or {checked}):")
        if not made and hasattr(self.dialect, "keep"):
            self.line(f"    _keep({root}, {result}, {self.rule.name!r})")
        self.line(f"    return {result}, {self.number}")

    def helped(self) -> bool:
        """True if a helper gives a node that the target may be made of."""
        return any(
            self.rule.bindings[name].sort in (Sort.NODE, Sort.NODES)
            for c in self.rule.syntax.clauses
            if isinstance(c, S.Let) and isinstance(c.value, S.ECall) and c.value.name in self.rule.externs
            for name in c.names
            if name in self.rule.bindings
        )

    def of_its_type(self, result: str) -> str:
        """More of a condition: that what is made has the type of what was matched. Of a helper's nodes contracts say the values,
        and not how many lanes they have.
        """
        if not self.helped():
            return ""
        return f" and {self.access.type(result)} {self.access.equal} {self.access.type(node_name(()))}"

    def _is_root(self, result: str) -> str:
        """Python text that is true if the result is the root again."""
        return self.access.same(result, self.node_at(()))

    def _is_new(self) -> bool:
        """True if the target cannot be the node that was matched, because it is a node of another op."""
        target = self.rule.syntax.target
        root = self.row.ops.get(())
        const = self.access.const_op
        if root is None or root in (const, "VConst"):
            return False
        match target:
            case S.ECall() if target.name in self.dialect.ops:
                return root != target.name
            case S.EStruct():
                return root != target.op
            case S.ECall(name="zero" | "one" | "const" | "identity") | S.ENumber() | S.EBinary() | S.EUnary():
                return const is not None
            case S.EName() | S.ECall():
                return const is not None and self.sort(target) is Sort.VALUE
        return False


__all__ = ["Emitter", "Tail", "helper_name", "node_name", "value_name"]
