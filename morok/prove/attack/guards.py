"""Random expressions of compile time, and other ways to say a given one.

What `Clauses` writes is well-typed, over the constants and nodes of a rule. `Rephrased` writes what means the same as a given
expression wherever it has a value: a rule that is true under a guard stays true, as the language reads it, and becomes false
where a reading of it goes astray.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from morok.dsl import syntax as S
from morok.dsl.check import check_text
from morok.dsl.concrete import compiled
from morok.dsl.values import FAILURES, Steps
from morok.errors import RuleError
from morok.prove.attack.random_terms import INTS, TYPINGS

LARGE: Final = (2**31, -(2**63), 2**64 - 1, 4096, 4097, 65)
COMPARED: Final = ("<", "<=", ">", ">=", "==", "!=")


class Clauses:
    """Writes guards and `let`s of a rule.

    nodes      the dtypes of its variables and constants by name
    values     names of integers that the pattern binds, or terms that are integers
    sequences  of integers, `many` of nodes
    items      names for what comprehensions take, with more letters where they are taken
    """

    def __init__(
        self,
        rng: random.Random,
        nodes: Mapping[str, str],
        values: Sequence[str] = (),
        sequences: Sequence[str] = (),
        many: Sequence[str] = (),
        items: Sequence[str] = ("item", "piece"),
    ) -> None:
        self.rng = rng
        self.nodes = dict(nodes)
        self.integers = list(values)
        self.sequences = list(sequences)
        self.many = list(many)
        self.items = list(items)
        self.fresh = 0

    def pick(self, *options: Callable[[], str]) -> str:
        return self.rng.choice(options)()

    def name(self) -> str:
        self.fresh += 1
        return f"u{self.fresh}"

    def clauses(self, depth: int) -> str:
        """Some `let`s and a guard over them, as they stand behind a pattern."""
        named = [f"let {one}" for one in self.named(depth)]
        guard = self.condition(depth)
        return " ".join([*named, f"if not ({guard})" if self.rng.random() < 0.5 else f"if {guard}"])

    def named(self, depth: int) -> list[str]:
        """The names that some `let`s bind, usable from then on."""
        found = []
        for _ in range(self.rng.choice((0, 0, 0, 1, 2))):
            name = self.name()
            if self.rng.random() < 0.6:
                found.append(f"{name} = {self.integer(depth)}")
                self.integers.append(name)
            else:
                found.append(f"{name} = {self.sequence(depth - 1)}")
                self.sequences.append(name)
        return found

    # expressions

    def number(self) -> str:
        return str(self.rng.choice(LARGE) if self.rng.random() < 0.06 else self.rng.randint(-3, 9))

    def leaf(self) -> str:
        rng = self.rng
        if self.integers and rng.random() < 0.6:
            return rng.choice(self.integers)
        return self.asked() if self.nodes and rng.random() < 0.4 else self.number()

    def asked(self) -> str:
        """A number that a node, or its dtype, is asked for."""
        rng = self.rng
        bounded = [n for n, d in self.nodes.items() if d in INTS or d == "index"]
        ways: list[Callable[[], str]] = [lambda: f"lanes({rng.choice(sorted(self.nodes))})"]
        sized = [n for n, d in self.nodes.items() if d not in ("index", "any")]
        if sized:
            ways.append(lambda: f"bits(dtype({rng.choice(sized)}))")
        if bounded:
            ways += [lambda: f"{rng.choice(['vmin', 'vmax'])}({rng.choice(bounded)})"] * 3
        if self.many:
            ways.append(lambda: f"len({rng.choice(self.many)})")
        return self.pick(*ways)

    def integer(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0:
            return self.leaf()
        one: Callable[[], str] = lambda: self.integer(depth - 1)  # noqa: E731
        many: Callable[[], str] = lambda: self.sequence(depth - 1)  # noqa: E731
        return self.pick(
            lambda: f"({one()} {rng.choice(['+', '-', '*', '//', '%', '&', '|', '^', '<<', '>>'])} {one()})",
            lambda: f"({rng.choice('-~')} {one()})",
            lambda: f"{rng.choice(['tdiv', 'tmod', 'min', 'max', 'gcd'])}({one()}, {one()})",
            lambda: f"{rng.choice(['min', 'max', 'gcd', 'sum', 'len'])}({many()})",
            lambda: f"abs({one()})",
            lambda: f"log2({rng.choice(['1', '4', '(1 << ' + self.leaf() + ')', one()])})",
            lambda: f"{many()}[{rng.choice([self.leaf(), one(), str(rng.randint(0, 2))])}]",
            lambda: self.on_axes(depth),
            self.leaf,
        )

    def on_axes(self, depth: int) -> str:
        rng = self.rng
        axes = self.axes(depth - 1)
        return self.pick(
            lambda: f"width({axes})",
            lambda: f"step({axes}, {rng.randint(0, 3)})",
            lambda: f"at({axes}, {rng.randint(0, 3)}, {self.leaf()})",
        )

    def axes(self, depth: int) -> str:
        if self.rng.random() < 0.3:
            return f"zip({self.sequence(depth)}, {self.sequence(depth)})"
        pairs = [f"[{self.rng.randint(0, 3)}, {self.integer(depth - 1)}]" for _ in range(self.rng.randint(1, 3))]
        return f"[{', '.join(pairs)}]"

    def sequence(self, depth: int) -> str:
        rng = self.rng
        least = 0 if rng.random() < 0.15 else 1

        def listed() -> str:
            return f"[{', '.join(self.integer(depth - 1) for _ in range(rng.randint(least, 3)))}]"

        if depth <= 0:
            return rng.choice(self.sequences) if self.sequences and rng.random() < 0.5 else listed()
        return self.pick(
            listed,
            lambda: f"[{self.sequence(depth - 1)}.., {self.integer(depth - 1)}]",
            lambda: f"[{self.sequence(depth - 1)}.., {self.sequence(depth - 1)}..]",
            lambda: self.comprehension(depth, self.integer),
        )

    def new(self, name: str) -> str:
        """A name that nothing has here, by more letters."""
        taken = {*self.nodes, *self.integers, *self.sequences, *self.many}
        while name in taken:
            name += "k"
        return name

    def comprehension(self, depth: int, body: Callable[[int], str]) -> str:
        rng = self.rng
        kind = rng.random()
        names = [self.new(n) for n in rng.sample(self.items, 1 if kind < 0.8 else 2)]
        if kind < 0.4:
            over = f"{rng.choice(['0', '1', '-1'])}{rng.choice(['..', '..='])}({self.leaf()} % 4)"
        elif kind < 0.8:
            over = self.sequence(depth - 1)
        else:
            over = f"zip({self.sequence(depth - 1)}, {self.sequence(depth - 1)})"
        outer = self.integers
        self.integers = [*outer, *names, names[0]]
        inner = body(depth - 1)
        filtered = f" if {self.condition(depth - 1)}" if rng.random() < 0.3 else ""
        self.integers = outer
        return f"[{inner} for {', '.join(names)} in {over}{filtered}]"

    def condition(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0:
            return f"{self.leaf()} {rng.choice(COMPARED)} {self.leaf()}"
        one: Callable[[], str] = lambda: self.integer(depth - 1)  # noqa: E731
        return self.pick(
            lambda: f"{one()} {rng.choice(COMPARED)} {one()}",
            lambda: f"{one()} {rng.choice(['<', '==', '<='])} {one()} {rng.choice(['<=', '!='])} {one()}",
            lambda: f"({self.condition(depth - 1)} {rng.choice(['and', 'or', 'or'])} {self.condition(depth - 1)})",
            lambda: f"(not {self.condition(depth - 1)})",
            lambda: f"is_pow2({one()})",
            lambda: f"{rng.choice(['all', 'any'])}({self.comprehension(depth, self.condition)})",
            lambda: f"({self.sequence(depth - 1)} {rng.choice(['==', '!='])} {self.sequence(depth - 1)})",
            self.fact,
            self.fact,
        )

    def fact(self) -> str:
        """A fact about nodes, or about dtypes."""
        rng = self.rng
        if not self.nodes:
            return self.condition(0)
        names = sorted(self.nodes)
        one, other = rng.choice(names), rng.choice(names)
        typed = [n for n in names if self.nodes[n] != "any"]
        whole = [n for n in typed if self.nodes[n] in (*INTS, "index")]
        ways: list[Callable[[], str]] = [
            lambda: f"defined({one})",
            lambda: f"same({one}, {other})",
            lambda: f"not same({one}, {other})",
        ]
        ways += [lambda: f"free_of_axes({one}, [[0, {rng.randint(1, 3)}]])"]
        if typed:
            x, y = rng.choice(typed), rng.choice(typed)
            ways += [
                lambda: f"{rng.choice(['is_int', 'is_float'])}(dtype({x}))",
                lambda: f"safe_cast(dtype({x}), dtype({y}))",
                lambda: f"defined({self.made(x)})",
            ]
        if whole:
            x = rng.choice(whole)
            ways += [lambda: f"no_overflow({rng.choice(['Add', 'Sub', 'Mul'])}({x}, {x}))"] * 2
        return self.pick(*ways)

    def made(self, x: str) -> str:
        """A node that a clause makes of another one."""
        at = self.nodes[x]
        options = [t.op for t in TYPINGS[at] if set(t.operands) == {at}]
        op = self.rng.choice(options)
        count = next(len(t.operands) for t in TYPINGS[at] if t.op == op)
        return f"{op}({', '.join([x] * count)})"


class Rephrased:
    """Other ways to say an expression, of the same meaning wherever they have a value."""

    def __init__(self, clauses: Clauses) -> None:
        self.clauses = clauses
        self.rng = clauses.rng
        self.named: list[str] = []  # the `let`s that it uses

    def integer(self, e: str, depth: int) -> str:
        """`e` as something else; nothing but `e` is compared where it may be infinite, and that has no value."""
        for _ in range(depth):
            e = (Rephrased._cancelled if "vm" in e and self.rng.random() < 0.3 else self.rng.choice(self.ways))(self, e)
        return e

    def other(self) -> str:
        """Any integer: what is taken with it, and left."""
        return self.clauses.integer(self.rng.choice((0, 0, 1)))

    def _cancelled(self, e: str) -> str:
        f = self.rng.choice((e, e, self.other()))
        return self.rng.choice(
            (f"({e} + ({f} - {f}))", f"({f} + ({e} - {f}))", f"({e} - ({f} - {f}))", f"(({e} - {f}) + {f})")
        )

    def _listed(self, e: str) -> str:
        """An item of a list: of which the others, that no index in the list reaches, are something else."""
        rng = self.rng
        f, g, h = rng.choice((self.other(), "0", "1")), self.other(), self.clauses.leaf()
        none = rng.choice(
            ("0", f"({g} - {g})", f"min({h}, 0)", f"(- abs({h}))", f"({h} - max({h}, 0))", f"(0 - {h})", f"(- {h})")
        )
        return rng.choice(
            (f"[{e}][0]", f"[{f}, {e}][1]", f"[{e}, {f}][{none}]", f"[{e}, {f}][{none}]", f"[{e}, {f}, {g}][{none}]")
        )

    def _summed(self, e: str) -> str:
        """A sum of parts; some only of as many as another sequence has items."""
        rng = self.rng
        f, h = rng.choice((self.other(), "0", "1")), self.clauses.leaf()
        count = rng.choice(("2", h, f"({h} + 1)", f"(2 - {h})", f"({h} * 2)"))
        ragged = f"zip([{e} - {f}, {f}], [0 for _k in 0..{count}])"
        equal = f"zip([{e}, {f}, - {f}], [0, 0, 0])"
        return rng.choice(
            (
                f"sum([{e}])",
                f"sum([{e}, {f}, - {f}])",
                f"sum([p for p, _q in {equal}])",
                f"sum([p for p, _q in {ragged}])",
                f"sum([p for p, _q in {ragged}])",
            )
        )

    def _folded(self, e: str) -> str:
        f = self.other()
        return self.rng.choice(
            (
                f"min({e}, {e})",
                f"max([{e}])",
                f"max({e}, {e} - abs({f}))",
                f"min({e}, {e} + abs({f}))",
                f"(gcd({e}, {e}) * tdiv({e}, abs({e})))",
                f"(max({e}, 0) + min({e}, 0))",
                f"(max({e}, 0) - gcd(min({e}, 0), 0))",
            )
        )

    def _scaled(self, e: str) -> str:
        f = self.other()
        return self.rng.choice(
            (
                f"(({e} * {f}) // {f})",
                f"tdiv({e} * {f}, {f})",
                f"(({e} // {f}) * {f} + {e} % {f})",
                f"(tdiv({e}, {f}) * {f} + tmod({e}, {f}))",
                f"(({e} << 3) >> 3)",
                f"(({e} << {f}) >> {f})",
                f"(- (- {e}))",
                f"(~ (~ {e}))",
                f"({e} ^ {f} ^ {f})",
                f"(({e} & {f}) | ({e} & ~ {f}))",
                f"({e} * width([[0, 1]]))",
                f"({e} * step([[1, 3], [0, {f}]], 0))",
                f"({e} + at([[0, 1]], 0, {f}))",
                f"(({e} // 4) * 4 + at([[1, 3], [0, 4]], 0, {e}))",
                f"(({e} // 3) * 3 + at([[2, 3]], 2, {e}))",
                f"({e} + log2(1))",
                f"({e} * len([{f}]))",
            )
        )

    def _named(self, e: str) -> str:
        name = self.clauses.name()
        self.named.append(f"let {name} = {e}")
        return name

    ways: Sequence[Callable[[Rephrased, str], str]] = (
        _cancelled,
        _cancelled,
        _listed,
        _listed,
        _summed,
        _folded,
        _scaled,
        _named,
    )

    def condition(self, c: str, depth: int) -> str:
        """`c` as something else that holds nowhere else."""
        rng = self.rng
        for _ in range(depth):
            f = self.clauses.condition(rng.choice((0, 0, 1)))
            n = self.other()
            c = rng.choice(
                (
                    f"(not (not ({c})))",
                    f"all([{c} for _k in 0..1])",
                    f"any([{c} for _k in 0..2])",
                    f"(({c}) and ({n} == {n}))",
                    f"(({c}) or ({n} - {n} != 0))",
                    f"(({c}) and ({f} or not {f}))",
                    f"(({c}) or ({f} and not {f}))",
                    f"([1 for _k in 0..1 if {c}] == [1])",
                    f"(len([1 for _k in 0..2 if {c}]) > 0)",
                    f"all([{c} for _p, _q in zip([1], [{n}])])",
                )
            )
        return c


def holding(rng: random.Random) -> str:
    """Random clauses that speak of nothing that a rule binds, and hold."""
    for _ in range(8):
        said = Clauses(rng, {}).clauses(rng.choice((1, 1, 2)))
        try:
            names: dict[str, Any] = {}
            for clause in clauses_of(said):
                found = compiled(clause.condition if isinstance(clause, S.If) else clause.value)(names, Steps())
                if isinstance(clause, S.Let):
                    names[clause.names[0]] = found
                elif not found:
                    break
            else:
                return said
        except (RuleError, *FAILURES):
            pass
    return "if 1 == 1"


def clauses_of(said: str) -> Sequence[S.If | S.Let]:
    """Clauses as syntax; RuleError if they make no sense."""
    return next(iter(check_text(f'group g "g"\n\nr: Add(x: i32, y) {said} ~> Add(y, x)\n').rules())).syntax.clauses
