"""The actions after a match: clauses, helpers and target of a rule, as statements."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule, Sort
from morok.dsl.extent import Extents
from morok.dsl.match.axes import may_drop_axes
from morok.dsl.match.clauses import Clause, Clauses, Path
from morok.dsl.match.code import assign, attempt, expression
from morok.dsl.match.extent_tests import ExtentTests
from morok.dsl.match.matched import Matched
from morok.dsl.match.node_code import NodeCode, local_name
from morok.dsl.special_ops import constants_op

_FAILURES: Final = "_failures"  # the variable, in generated code, of the exceptions by which arithmetic has no value
_NO_NODE: Final = "_no_node"  # that of these and of the one by which an op refuses its operands
_CLASSES: Final = {"const": "int", "int": "int", "bool": "bool"}  # the Python class of a helper's result, by its kind


@dataclass(slots=True)
class Action:
    """The statements behind the constraints of a clause: they return the result, or fall through if the rule does not apply.

    name, number, order  the rule's name and number, and the number of the clause among the rule's
    nodes, values  the paths of the nodes, and of the constants' values, that the statements read
    cannot_fail    the statements always return
    early          the number of leading statements that stay in place if the others become a function: a helper's call, if any,
                   and the first test, which holds the others
    result         the variable of that helper's result
    """

    name: str
    number: int
    order: int
    body: list[ast.stmt] = field(default_factory=list)
    nodes: set[Path] = field(default_factory=set)
    values: set[Path] = field(default_factory=set)
    cannot_fail: bool = True
    early: int = 0
    result: str | None = None


def action_of(
    rule: CheckedRule, clause: Clause, made: Clauses, number: int, order: int, limits: Extents | None
) -> Action:
    """The action of a clause of the rule with this number in a matcher. `limits`: the matcher's reaction beyond the extents of
    the rule's proof, if that has extents.
    """
    return _Maker(rule, clause, made, Action(rule.name, number, order), limits).made()


class _Maker:
    """The builder of one action. It appends statements to `body`, the innermost block so far."""

    def __init__(
        self, rule: CheckedRule, clause: Clause, made: Clauses, action: Action, limits: Extents | None
    ) -> None:
        self.rule = rule
        self.clause = clause
        self.dialect = rule.dialect
        self.code = made.code
        self.access = made.access
        self.action = action
        self.limits = limits
        self.matched = Matched(rule, clause, made)
        self.expressions = NodeCode(self.matched)
        if limits is not None:
            self.matched.most = {e.what: e.most for e in limits if e.what in ("shift", "power")}
        self.body = action.body
        self.counting = False  # true once the statement that makes the budget is put
        self.drops_axes = may_drop_axes(rule, made.of_axes)
        self.failures = self.code.name(_FAILURES)
        self.number = self.code.constant(action.number)

    def made(self) -> Action:
        for clause in self.rule.syntax.clauses:
            if isinstance(clause, S.If):
                self.guard(clause.condition)
            else:
                self.let(clause)
        self.target()
        action = self.action
        action.nodes, action.values = self.matched.nodes, self.matched.values
        if self.clause.gaps:
            action.cannot_fail = False  # the operands behind a sequence may match nowhere
        return action

    # blocks

    def put(self, *statements: ast.stmt) -> None:
        self.body += statements

    def when(self, condition: ast.expr) -> None:
        """Open a block under a condition: all further statements go there."""
        self.action.cannot_fail = False
        inner: list[ast.stmt] = []
        self.put(ast.If(condition, inner, []))
        self.body = inner

    def where_defined(self, *statements: ast.stmt, failures: ast.expr | None = None) -> None:
        """Open a block that runs if these statements raise no failure: all further statements go there."""
        self.action.cannot_fail = False
        inner: list[ast.stmt] = []
        self.put(attempt(list(statements), failures or self.failures, [ast.Pass()], inner))
        self.body = inner

    def budget(self) -> None:
        """Put the statement that makes the rule's one budget in front of the first clause or target that counts steps."""
        if self.matched.steps and not self.counting:
            self.counting = True
            self.put(assign(["steps"], self.code.call("_Steps")))

    def otherwise(self, name: str, value: ast.expr, instead: ast.expr) -> ast.expr:
        """The variable of a value, or of `instead` if the value is undefined."""
        self.put(attempt([assign([name], value)], self.no_value(), [assign([name], instead)], []))
        return self.code.name(name)

    def no_value(self) -> ast.expr:
        """The exceptions by which a clause shows that it has no value: one that builds nodes, by building none, too."""
        return self.code.name(_NO_NODE) if self.matched.builds else self.failures

    # clauses

    def guard(self, condition: S.Expr) -> None:
        self.matched.raises = self.matched.builds = False
        test = self.expressions.condition(condition)
        self.budget()
        if self.matched.raises or self.matched.builds:
            test = self.otherwise(self.matched.temporary(), test, self.code.constant(False))
        if not self.action.body:
            self.action.early = 1
        self.when(test)

    def let(self, clause: S.Let) -> None:
        self.matched.raises = self.matched.builds = False
        value, extern = clause.value, None
        if isinstance(value, S.ECall) and value.name in self.rule.externs:
            extern, made = self.rule.externs[value.name], self.expressions.helper_call(value)
        else:
            made = self.expressions.any(value)
        self.budget()
        names = list(map(local_name, clause.names))
        if extern is not None and extern.partial:
            result = self.matched.temporary()
            if self.matched.raises or self.matched.builds:
                self.otherwise(result, made, self.code.none)
            else:
                if not self.action.body:
                    self.action.early, self.action.result = 2, result
                self.put(assign([result], made))
            self.when(self.code.compare(self.code.name(result), "is not", self.code.none))
            self.put(assign(names, self.code.name(result)))
        elif self.matched.raises or self.matched.builds:
            self.where_defined(assign(names, made), failures=self.no_value())
        else:
            self.put(assign(names, made))
        self.matched.locals.update(zip(clause.names, map(self.code.name, names), strict=True))
        if extern is not None:
            self.results(extern, clause.names)

    def results(self, extern: S.Extern, names: Sequence[str]) -> None:
        """Tests that a helper's results are as declared."""
        for p, name in zip(extern.results, names, strict=True):
            kind = p.type.name if isinstance(p.type, S.TName) else ""
            binding = self.rule.bindings.get(name)
            is_node = binding is not None and binding.sort in (Sort.NODE, Sort.NODES)
            if name.startswith("_") or is_node:
                continue
            local = self.matched.locals[name]
            if kind in _CLASSES:
                self.when(
                    self.code.compare(self.code.attribute(local, "__class__"), "is", self.code.name(_CLASSES[kind]))
                )
            elif kind == "seq":
                sequences = self.code.tuple_of((self.code.name("tuple"), self.code.name("list")))
                self.when(self.code.call("isinstance", local, sequences))

    # the target

    def target(self) -> None:
        self.matched.raises = False
        made = self.expressions.node(self.rule.syntax.target)
        self.budget()
        is_local = made in self.matched.locals.values()
        if self.limits is not None:
            self.limited(made, self.limits, is_local)
            return
        root = self.matched.node(())
        if made in {self.matched.made.node(p) for p in self.matched.nodes if p}:  # an operand: never the node itself
            self.axes_kept(made)
            self.put(*self.note("keep", root, made))
            self.end(made)
            return
        derived = [] if is_local else self.note("derive", root)
        if self._is_new() and not (self.matched.raises or self.helped() or self.drops_axes):
            self.put(*derived)
            self.end(made)
            return
        result = self.matched.temporary()
        if self.matched.raises:
            self.where_defined(*derived, assign([result], made))
        else:
            self.put(*derived, assign([result], made))
        self.returned(result, is_new=not is_local)

    def limited(self, made: ast.expr, limits: Extents, is_local: bool) -> None:
        """Return the target if the match lies within the extents of the proof, or passes the check of its instance."""
        code = self.code
        root = self.matched.node(())
        is_new = not is_local and made not in {self.matched.made.node(p) for p in self.matched.nodes}
        extents = ExtentTests(self.matched)
        inside, result = self.matched.temporary(), self.matched.temporary()
        within = code.name(inside)
        self.put(assign([inside], code.all_of([extents.within(e) for e in limits])))
        # beyond its extent a rule may be false, and its target malformed: any exception may come
        failures = code.choice(within, self.failures, code.name("Exception"))
        derived = self.note("derive", root) if is_new else []
        self.where_defined(*derived, assign([result], made), failures=failures)
        checked = code.call("_stands_in", root, code.name(result), code.constant(self.rule.name), extents.leaves())
        self.returned(result, is_new, code.any_of((within, checked)))

    def returned(self, result: str, is_new: bool, *conditions: ast.expr) -> None:
        """Return the result if it is another node than the root, has its type, and meets these conditions."""
        code = self.code
        root, made = self.matched.node(()), code.name(result)
        tests = [code.unary("not", self.access.same(made, root))]
        if self.helped():  # a contract gives the values of a helper's nodes, but not their lanes
            tests.append(self.access.alike(self.access.type(made), self.access.type(root)))
        self.when(code.all_of([*tests, *conditions]))
        self.axes_kept(made)
        if not is_new:
            self.put(*self.note("keep", root, made))
        self.end(made)

    def axes_kept(self, made: ast.expr) -> None:
        """The test that a tensor is not replaced by a smaller one."""
        if self.drops_axes:
            self.when(self.code.call("_same_axes", self.matched.node(()), made))

    def end(self, result: ast.expr) -> None:
        self.put(ast.Return(self.code.tuple_of((result, self.number))))

    def note(self, hook: str, *nodes: ast.expr) -> list[ast.stmt]:
        """The call of a hook of the dialect with nodes and the rule's name; [] if the dialect lacks the hook."""
        if not hasattr(self.dialect, hook):
            return []
        return [expression(self.code.call(f"_{hook}", *nodes, self.code.constant(self.rule.name)))]

    def helped(self) -> bool:
        """True if the target may use a node that a helper returns."""
        return any(
            self.rule.bindings[name].sort in (Sort.NODE, Sort.NODES)
            for c in self.rule.syntax.clauses
            if isinstance(c, S.Let) and isinstance(c.value, S.ECall) and c.value.name in self.rule.externs
            for name in c.names
            if name in self.rule.bindings
        )

    def _is_new(self) -> bool:
        """True if the target cannot be the node that was matched, because it is a node of another op."""
        target = self.rule.syntax.target
        root = self.clause.ops.get(())
        const = self.access.const_op
        constants = constants_op(self.dialect)
        if root is None or root == const or (constants is not None and root == constants.name):
            return False
        match target:
            case S.ECall() if target.name in self.dialect.ops:
                return root != target.name
            case S.EStruct():
                return root != target.op
            case S.ECall(name="zero" | "one" | "const" | "identity") | S.ENumber() | S.EBinary() | S.EUnary():
                return const is not None
            case S.EName() | S.ECall():
                return const is not None and self.matched.sort(target) is Sort.VALUE
        return False
