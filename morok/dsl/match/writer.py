"""From a decision tree to the Python function of one op."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Final

from morok.dialect import OpInfo
from morok.dsl.match.clauses import Clause, Clauses, Constraint, Path, gap_name, node_name, step_offset, value_name
from morok.dsl.match.code import assign, expression, function, lines_of, target, title
from morok.dsl.match.decision_tree import Builder, Candidate, Switch, Test, Tree

SHORT: Final = 3  # lines: an action up to this length is repeated rather than called

Body = list[ast.stmt]


def function_of(
    name: str, op: OpInfo | None, candidates: Sequence[Candidate], made: Clauses, counting: bool
) -> list[ast.stmt]:
    """The function that matches nodes of an op (None: of any op), behind functions for its actions that are long and occur more
    than once. `counting`: it calls `_tried` with the number of each rule whose ops agree with the node's.
    """
    built = Builder(candidates)
    actions = {id(c.action): c for c in reversed(candidates)}
    called = {
        i: f"{name}_rule_{c.action.number}_{c.action.order}"
        for i, c in reversed(actions.items())
        if built.uses[i] > 1 and lines_of(c.action.body) > SHORT
    }
    writer = _Writer(op, made, called, counting)
    helpers = [writer.action_function(called[i], actions[i]) for i in called]
    body: Body = []
    writer.write(built.tree, set(), body)
    return [*helpers, function(name, ["n", "context"], body or [ast.Return(made.code.none)])]


class _Writer:
    """The writer of steps at the ends of blocks; `known` are the variables that a block has.

    called  the names of the functions of actions, by the actions' identities
    """

    def __init__(self, op: OpInfo | None, made: Clauses, called: Mapping[int, str], counting: bool) -> None:
        self.op = op
        self.made = made
        self.code = made.code
        self.access = made.access
        self.ops = made.access.dialect.ops
        self.called = called
        self.counting = counting

    def write(self, tree: Tree, known: set[str], body: Body) -> None:
        known = set(known)
        for step in tree:
            match step:
                case Switch():
                    self.switch(step, known, body)
                case Test():
                    self.load(step.constraint, step.clause, known, body)
                    body.append(self.decided(step.constraint.condition, step.yes, step.no, known))
                case Candidate():
                    self.candidate(step, known, body)

    def decided(self, condition: ast.expr, yes: Tree, no: Tree, known: set[str]) -> ast.stmt:
        return ast.If(condition, self.branch(yes, known), self.branch(no, known) if no else [])

    def branch(self, tree: Tree, known: set[str]) -> Body:
        body: Body = []
        self.write(tree, known, body)
        return body or [ast.Pass()]

    def switch(self, step: Switch, known: set[str], body: Body) -> None:
        self.load_node(step.path, step.clause, known, body)
        opkey = self.access.opkey(self.made.node(step.path))
        if len(step.cases) > 2:
            body.append(assign(["op"], opkey))
            opkey = self.code.name("op")
        rest = self.branch(step.otherwise, known) if step.otherwise else []
        for op, tree in reversed(step.cases):
            rest = [ast.If(self.access.alike(opkey, self.access.key(op)), self.branch(tree, known), rest)]
        body += rest

    # one clause

    def candidate(self, c: Candidate, known: set[str], body: Body) -> None:
        """A clause's open constraints, tested in turn, and its action."""
        conditions: list[ast.expr] = []
        gaps = iter(enumerate(c.clause.gaps))
        entered = 0
        told = not self.counting

        def enter(inner: Body) -> None:  # later loads stay inside this block
            nonlocal body, known
            body, known = inner, set(known)

        def flush() -> None:
            if conditions:
                inner: Body = []
                body.append(ast.If(self.code.all_of(conditions), inner, []))
                conditions.clear()
                enter(inner)

        def tell() -> None:  # the ops agree with the rule's: it counts as tried
            nonlocal told
            if not told:
                flush()
                body.append(expression(self.code.call("_tried", self.code.constant(c.action.number))))
                told = True

        def end_sequences(count: int) -> None:
            nonlocal entered
            while entered < count:
                flush()
                number, gap = next(gaps)
                self.load_node(gap.path, c.clause, known, body)
                if gap.pinned:
                    body.append(assign([gap_name(number)], self.code.plus(gap.end, -gap.after)))
                    enter(body)  # another clause may have another sequence of this number
                else:
                    ends = self.code.call(
                        "range", self.code.constant(gap.first), self.code.plus(gap.end, 1 - gap.after)
                    )
                    inner: Body = []
                    body.append(ast.For(target(gap_name(number)), ends, inner, []))
                    enter(inner)
                entered += 1

        for test in sorted(c.open, key=lambda t: (t.ends, t.of_gap)):
            end_sequences(test.ends)
            if test.op is None:
                tell()
            if self.missing(test, known):
                flush()
                self.load(test, c.clause, known, body)
            conditions.append(test.condition)
        end_sequences(len(c.clause.gaps))
        flush()
        tell()
        for p in sorted(c.action.nodes):
            self.load_node(p, c.clause, known, body)
        for p in sorted(c.action.values):
            self.load_value(p, c.clause, known, body)
        body += self.placed(c)

    def placed(self, c: Candidate) -> Body:
        """An action in its place: its statements, or the early ones and a call of the function of the others."""
        action = c.action
        name = self.called.get(id(action))
        if name is None:
            return [title(action.name), *action.body]
        call = self.code.call(name, *map(self.code.name, ("context", *_parameters(c))))
        if action.cannot_fail:
            return [ast.Return(call)]
        hit = self.code.name("hit")
        found = self.code.compare(hit, "is not", self.code.none)
        calling: Body = [assign(["hit"], call), ast.If(found, [ast.Return(hit)], [])]
        if not action.early:
            return calling
        *first, test = action.body[: action.early]
        assert isinstance(test, ast.If)
        return [*first, ast.If(test.test, calling, [])]

    def action_function(self, name: str, c: Candidate) -> ast.stmt:
        """The function of an action's statements, without the early ones."""
        body = c.action.body
        if c.action.early:
            test = body[c.action.early - 1]
            assert isinstance(test, ast.If)
            body = test.body
        return function(name, ["context", *_parameters(c)], [title(c.action.name), *body])

    # variables

    def missing(self, c: Constraint, known: set[str]) -> bool:
        return any(p and node_name(p) not in known for p in c.paths) or any(
            value_name(p) not in known for p in c.values
        )

    def load(self, c: Constraint, clause: Clause, known: set[str], body: Body) -> None:
        """Assign variables for the nodes and the values that a constraint reads."""
        for p in c.paths:
            self.load_node(p, clause, known, body)
        for p in c.values:
            self.load_value(p, clause, known, body)

    def load_node(self, path: Path, clause: Clause, known: set[str], body: Body) -> None:
        if not path or node_name(path) in known:
            return
        parent = path[:-1]
        self.load_node(parent, clause, known, body)
        op = clause.ops.get(parent) if parent else (self.op.name if self.op is not None else clause.ops.get(()))
        info = self.ops.get(op) if op is not None else None
        operands = self.access.operands(self.made.node(parent))
        if info is not None and len(info.operands) > 1 and not any(o.many or o.optional for o in info.operands):
            names = [node_name((*parent, i)) for i in range(len(info.operands))]
            body.append(assign(names, operands))
            known.update(names)
            return
        gap, offset = step_offset(path[-1])
        at = offset if gap is None else self.code.plus(self.code.name(gap_name(gap)), offset)
        body.append(assign([node_name(path)], self.code.item(operands, at)))
        known.add(node_name(path))

    def load_value(self, path: Path, clause: Clause, known: set[str], body: Body) -> None:
        if value_name(path) not in known:
            self.load_node(path, clause, known, body)
            body.append(assign([value_name(path)], self.access.value(self.made.node(path))))
            known.add(value_name(path))


def _parameters(c: Candidate) -> list[str]:
    """The parameters of an action's function besides the context."""
    names = [node_name(p) for p in sorted(c.action.nodes | {()})] + [value_name(p) for p in sorted(c.action.values)]
    names += [c.action.result] if c.action.result is not None else []
    return names + [gap_name(number) for number in range(len(c.clause.gaps))]
