"""Clauses in their order: guards, `let`, and helpers by their contracts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from morok.dsl import syntax as S
from morok.prove import smt
from morok.prove.answers import Answer
from morok.prove.encoding.asked import ANY, words_of
from morok.prove.encoding.obligation import Inapplicable
from morok.prove.encoding.pattern_bindings import Patterns
from morok.prove.kinds import Node, Truth
from morok.prove.semantics.numbers import Num
from morok.prove.semantics.term import Term, Unsupported, both, either, negation
from morok.prove.smt import TRUE, Expr
from morok.prove.solve import QUICK_BUDGET, ask
from morok.prove.symbol import Symbol


class Clauses(Patterns):
    """The premises from `if` and `let`."""

    def clause(self, clause: S.If | S.Let) -> None:
        if isinstance(clause, S.If):
            self.premise(self.has_and_holds(clause.condition))
            return
        value = clause.value
        if isinstance(value, S.ECall) and value.name in self.rule.externs:
            results = self.helper(self.rule.externs[value.name], value)
            for name, result, r in zip(clause.names, results, self.rule.externs[value.name].results, strict=True):
                self.names[name] = result
                self.meanings[name] = ("result", self.calls, r.name)
            return

        def read() -> tuple[Any, Expr]:
            return self.reading(lambda: self.expression(value))

        result, needed = self.made(read) if self.makes_nodes(value) else read()
        if len(clause.names) != 1:
            raise Unsupported("several names for one value")
        self.premise(needed, self.existence(result))
        words = words_of(value, self.meanings)
        self.names[clause.names[0]] = result
        self.meanings[clause.names[0]] = ("let", clause.names[0]) if words is ANY else words

    def made(self, make: Callable[[], Any]) -> Any:
        """The nodes that a rule makes of a match. That it cannot be made is no reason to pass the match over, if there is one."""
        try:
            return make()
        except Inapplicable:
            if ask([*self.out.premises, *self.world.axioms], QUICK_BUDGET).answer is Answer.UNSAT:
                raise
            raise Unsupported("nodes of other lanes or shapes than they are given") from None

    def makes_nodes(self, e: S.Expr) -> bool:
        return any(
            (x.name if isinstance(x, S.ECall) else getattr(x, "op", "")) in self.rule.dialect.ops for x in S.walk(e)
        )

    def helper(self, extern: S.Extern, call: S.ECall) -> list[Any]:
        """A helper by its contract: what it requires is proved of the clauses before, what it ensures is assumed, both where the
        nodes that it is given have values. It is called at every match, whether or not what is matched has a value.
        """
        arguments: dict[str, Any] = {}
        nodes: list[Node] = []
        for param, arg in zip(extern.params, call.args, strict=False):
            value, needed = self.reading(functools.partial(self.expression, arg))
            self.premise(needed, self.existence(value), value.finite if isinstance(value, Num) else TRUE)
            arguments[param.name] = value
            if isinstance(value, Node):
                nodes.append(value)
        asked = both(*(c for n in nodes for t in n.lanes for c in (t.defined, negation(t.invalid))))
        meaningless = negation(asked)
        self.calls += 1
        results = [self.result(extern, r, self.calls, arguments, asked) for r in extern.results]
        self.world.place = "contracts"
        outer, self.names = (
            self.names,
            {**arguments, **{r.name: v for r, v in zip(extern.results, results, strict=True)}},
        )
        meant, self.meanings = (
            self.meanings,
            {
                **{p.name: words_of(a, self.meanings) for p, a in zip(extern.params, call.args, strict=False)},
                **{r.name: ("result", self.calls, r.name) for r in extern.results},
            },
        )
        try:
            for i, requirement in enumerate(extern.requires):
                claim = either(meaningless, self.has_and_holds(requirement))
                known = (*(p for p in self.out.premises if p is not self.has_value), *self.ordered_bounds)
                self.out.lemmas.append((f"{extern.name} requires #{i + 1}", known, claim))
            for promise in extern.ensures:
                self.premise(either(meaningless, self.has_and_holds(promise)))
        finally:
            self.names, self.meanings, self.world.place = outer, meant, ""
        return results

    def has_and_holds(self, condition: S.Expr) -> Expr:
        """The condition that another has a value, and the value is true."""
        truth, needed = self.reading(lambda: self.truth(condition))
        return both(needed, truth.exists, truth.value)

    def result(self, extern: S.Extern, r: S.Param, call: int, arguments: dict[str, Any], asked: Expr) -> Any:
        """A result: it has a value, which is not Invalid, where the contract was `asked` for it; elsewhere it may be anything."""
        unknown = Symbol("result", extern.name, r.name, call)
        kind = r.type.name if isinstance(r.type, S.TName) else ""
        if kind in ("const", "int"):
            number = Num(self.numbers.n.variable(unknown))
            self.out.learn(unknown.label, "value", number)
            return number
        nodes = any(isinstance(v, Node) and v.dtype == "bool" for v in arguments.values())
        if kind == "bool" and not nodes:  # of a condition that is a node, a helper makes conditions that are nodes
            return Truth(smt.Bool(unknown))
        if kind in ("seq", "dtype"):
            raise Unsupported(f"helpers that return {kind}")
        dtype = self.result_dtype(kind, arguments)
        term = self.world.variable(unknown, dtype, maybe_invalid=True)
        self.out.bind(unknown.label, dtype, term)
        defined = either(asked, smt.Bool(Symbol("defined", unknown)))
        return Node((Term(term.value, defined, both(negation(asked), term.invalid)),), dtype)

    def result_dtype(self, kind: str, arguments: dict[str, Any]) -> str:
        """A dtype by name, or the dtype of the node arguments where the contract names a class or a variable."""
        if kind in self.rule.dialect.dtypes:
            return kind
        for v in arguments.values():
            if isinstance(v, Node):
                return v.dtype
        raise Unsupported(f"a helper's result of dtype {kind}")
