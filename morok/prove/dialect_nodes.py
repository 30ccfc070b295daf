"""The methods, templates and facts of a dialect about nodes that it has built: round trips, and each against the others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from morok.dialect import NOT_CONST, Dialect, OpInfo
from morok.dsl.declared import Mistake
from morok.dsl.structural import takes_dtype
from morok.dsl.values import NoValue
from morok.prove.dialect_agreement import Wrong, evaluated
from morok.prove.dialect_calls import call, const_value
from morok.prove.dialect_facts import Case, node_mistakes
from morok.prove.dialect_meanings import signatures
from morok.prove.dialect_templates import (
    building_templates,
    constant_of_any_number,
    constant_templates,
    read_templates,
    remembered,
    same_template,
)
from morok.prove.dialect_theory import numbers_around
from morok.prove.dialect_values import few, same_number

FEW: Final = 6  # constants of a dtype that ops are built over
DEPTH: Final = 4  # of nodes that are evaluated
# mistakes that are one op's: its nodes are made so
BUILDING: Final = ("build", "rebuild", "inline['build", "inline['pointwise")

Values = Mapping[str, Sequence[Any]]  # some values of each dtype
Worlds = Mapping[str, Sequence[Any]]  # the encodings of each dtype


def constant_mistakes(dialect: Dialect, values: Values, worlds: Worlds) -> Iterator[Mistake]:
    """Mistakes where constants are not what they were made of, or not of the dtype, or facts do not hold of them."""
    first: dict[str, tuple[Any, Any]] = {}  # of each dtype, with its value
    for name, some in values.items():
        try:
            nodes = [(v, constant(dialect, name, v)) for v in some]
            _alike_at_two_dtypes(dialect, name, nodes, first)
            for v, node in nodes:
                yield from node_mistakes(Case(dialect, node, "", (), name, v, worlds.get(name, ()), repr(v)))
            for (v, a), (w, b) in itertools.combinations(nodes, 2):
                if not same_number(v, w):
                    if call(dialect, "same", a, b):
                        what = f"the constants {v!r} and {w!r} of {name} are the same to it"
                        raise Wrong("same", what, "whether nodes are equal")
                    same_template(dialect, a, b, f"constants of {name}")
        except Wrong as wrong:
            spoils = wrong.mistake.field in ("const", "const_value")
            yield replace(wrong.mistake, dtypes=(name,), constants=True) if spoils else wrong.mistake


def _alike_at_two_dtypes(
    dialect: Dialect, name: str, nodes: Sequence[tuple[Any, Any]], first: dict[str, tuple[Any, Any]]
) -> None:
    """An error where constants of two dtypes are the same; `first` gets the first one of this dtype."""
    for other, (w, b) in first.items():
        for v, a in nodes:
            if call(dialect, "same", a, b) or call(dialect, "same", b, a):
                what = f"the constants {v!r} of {name} and {w!r} of {other} are the same to it"
                raise Wrong("same", what, "whether nodes are equal, and so of one type")
            same_template(dialect, a, b, f"constants of {name} and {other}")
    if nodes:
        first[name] = nodes[0]


def constant(dialect: Dialect, name: str, value: Any) -> Any:
    made = call(dialect, "const", dialect.dtypes[name], value)
    back = const_value(dialect, made)
    if back is NOT_CONST or back is None:
        shown = "NOT_CONST" if back is NOT_CONST else "None"
        raise Wrong("const_value", f"of const({name}, {value!r}) is {shown}", f"{value!r}")
    if not same_number(back, value):
        raise Wrong(
            "const", f"const_value(const({name}, {value!r})) is {back!r}", f"{value!r}, a value of {name} to the theory"
        )
    kind = call(dialect, "type", made)
    if kind != dialect.dtypes[name]:
        raise Wrong("type", f"of const({name}, {value!r}) is {kind!r}", f"{dialect.dtypes[name]!r}")
    if not call(dialect, "same", made, made):
        raise Wrong("same", f"const({name}, {value!r}) is not the same as itself", "True")
    key = call(dialect, "opkey", made)
    clash = [n for n, info in dialect.ops.items() if info.key == key and info.params]
    if clash:
        raise Wrong("opkey", f"constants have the key of {clash[0]}", "a key of their own")
    again = call(dialect, "const", dialect.dtypes[name], value)
    if getattr(dialect, "hash_consed", False) and again is not made:
        raise Wrong(
            "hash_consed", f"const({name}, {value!r}) is another object each time", "equal nodes that are one object"
        )
    constant_templates(dialect, name, value, made, key)
    return made


def template_of_constants(dialect: Dialect, name: str, values: Sequence[Any]) -> Iterator[Mistake]:
    """The mistake where the template makes other constants of numbers, in the dtype or beyond, than the method."""
    try:
        for v in numbers_around(values) if "const" in dialect.inline else ():
            constant_of_any_number(dialect, name, v)
    except Wrong as wrong:
        yield wrong.mistake


class OpNodes:
    """The nodes of one op over constants, and what is wrong with them."""

    def __init__(self, dialect: Dialect, info: OpInfo, values: Values, worlds: Worlds) -> None:
        self.dialect = dialect
        self.info = info
        self.values = values
        self.worlds = worlds
        self.found: dict[str, Mistake] = {}
        self.last: Any = None

    def mistakes(self) -> list[Mistake]:
        """The mistakes, the first of each field. Nodes with static fields are not made up."""
        for names, result in () if self.info.fields else signatures(self.info):
            if all(n in self.values for n in names):
                self._at(names, result)
        if getattr(self.dialect, "closed_types", False) and not self.info.fields:
            self._closed()
        return list(self.found.values())

    def _closed(self) -> None:
        """An error where nodes of the op can be built that it does not list, though the dialect denies it."""
        for names, result in self._unlisted():
            try:
                operands = tuple(self._some(n) for n in names)
                there = self.dialect.opkey(self.build(operands, result)) == self.info.key
            except Exception:  # it refuses, as it says
                continue
            if there:
                shown = ", ".join([*(names or ["no operands"]), *([f"to {result}"] if takes_dtype(self.info) else [])])
                what = f"{self.info.name} can be built at {shown}, which it does not list"
                self.add(Mistake("", "closed_types", what, "an error, or closed_types = False"))
                return

    def _unlisted(self) -> Iterator[tuple[list[str], str]]:
        """Dtypes of the operands and of the result, one of which is not as the op lists them, or that are more or fewer."""
        info, every = self.info, tuple(self.dialect.dtypes)
        at = {letter: next((n for n in names if n in self.values), "") for letter, names in info.domains.items()}
        names, result = [at.get(p, p) for p in info.params], at.get(info.result, info.result)
        for letter, listed in info.domains.items():
            for other in every:
                if other not in listed:
                    there = {**at, letter: other}
                    yield [there.get(p, p) for p in info.params], there.get(info.result, info.result)
        for i, p in enumerate(info.params):
            alone = p in info.domains and info.params.count(p) == 1
            for other in every:
                if other != names[i] and not alone:  # what another operand is not, or what no operand of the kind is
                    yield [*names[:i], other, *names[i + 1 :]], result
        yield from ((several, result) for several in (names[:-1], [*names, names[-1]], names * 2, []))

    def _some(self, name: str) -> Any:
        """A constant of a dtype, whether or not the theory has values of it."""
        for value in (*self.values.get(name, ())[:1], 0, 0.0, False):
            try:
                return self.dialect.const(self.dialect.dtypes[name], value)
            except Exception:  # there may be one of another value
                continue
        raise LookupError(f"no constant of {name}")

    def _at(self, names: Sequence[str], result: str) -> None:
        try:
            some = [[(v, constant(self.dialect, n, v)) for v in few(self.values[n], FEW)] for n in names]
        except Wrong:
            return  # said of the constants
        built = 0
        others = None
        for chosen in itertools.product(*some):
            operands = tuple(node for _, node in chosen)
            given = tuple(v for v, _ in chosen)
            try:
                node = self.build(operands, result)
                value = const_value(self.dialect, node)
                if value is None:
                    raise Wrong("const_value", "of a node that is no constant is None", "NOT_CONST")
                want = self._wanted(names, result, given)
                self.templates(node, operands, result, want, self._shown(given))
                if value is not NOT_CONST:  # built as what it is
                    self._folded(node, result, given, value, want)
                    continue
                built += call(self.dialect, "opkey", node) == self.info.key
                if call(self.dialect, "opkey", node) == self.info.key:
                    self._node(node, operands, others or operands, result, given)
                    others = operands
            except Wrong as wrong:
                self.add(wrong.mistake)
                return
        if not built and not any(self.folds(names, result)):
            made = f"build({self.info.name!r}, ..) at {', '.join(names)} makes no node whose opkey is {self.info.key!r}"
            self.add(Mistake("", "build", made, f"a node of {self.info.name}"))

    def folds(self, names: Sequence[str], result: str) -> Iterator[bool]:
        """For each trial True if the constants make a constant."""
        for values in itertools.product(*(self.values[n][:2] for n in names)):
            try:
                node = self.build(
                    tuple(constant(self.dialect, n, v) for n, v in zip(names, values, strict=True)), result
                )
                yield call(self.dialect, "const_value", node) is not NOT_CONST
            except Wrong:
                yield False

    def add(self, mistake: Mistake) -> None:
        """Note a mistake in what this op alone is built with, or is asked of its nodes; a template is asked of all nodes."""
        common = mistake.constants or mistake.field == "recall" or mistake.field.startswith("inline")
        own = mistake.field.startswith(BUILDING)
        self.found.setdefault(mistake.field, mistake if common and not own else replace(mistake, op=self.info.name))

    def build(self, operands: tuple[Any, ...], result: str) -> Any:
        given = self.dialect.dtypes[result] if takes_dtype(self.info) else None
        return call(self.dialect, "build", self.info.name, operands, {}, given)

    def is_plain(self, node: Any, name: str) -> bool:
        """True if a node is a constant of a dtype as `const` makes it, and no node of an op whose value is known."""
        some = self.values.get(name, ())
        key = call(self.dialect, "opkey", node)
        return bool(some) and bool(key == call(self.dialect, "opkey", constant(self.dialect, name, some[0])))

    def _shown(self, given: Sequence[Any]) -> str:
        return f"{self.info.name}({', '.join(map(repr, given))})"

    def _wanted(self, names: Sequence[str], result: str, given: tuple[Any, ...]) -> Any:
        """The value that the op has of these; NOT_CONST where it has none, or none that is known."""
        try:
            return NOT_CONST if self.info.evaluate is None else evaluated(self.dialect, self.info, names, result, given)
        except Exception:  # said of the evaluator
            return NOT_CONST

    def _folded(self, node: Any, result: str, given: tuple[Any, ...], value: Any, want: Any) -> None:
        """An error unless what is built as a constant, or said to be one, has the value of the op."""
        if want is not NOT_CONST and not same_number(value, want):
            if self.is_plain(node, result):
                raise Wrong("build", f"{self._shown(given)} is built as {value!r}, and evaluates to {want!r}")
            what = f"of {self._shown(given)} is {value!r}, and it evaluates to {want!r}"
            raise Wrong("const_value", what, "the value of a node, or NOT_CONST", constants=True)

    def templates(self, node: Any, operands: tuple[Any, ...], result: str, want: Any, shown: str) -> None:
        """An error unless the templates say of a node what the methods say, and build one that is as good."""
        d = self.dialect
        read_templates(d, node, shown, result)
        for template, made in building_templates(d, self.info, operands, d.dtypes[result]):
            if call(d, "same", made, node):
                continue
            value = self.value(made)
            alike = call(d, "type", made) == d.dtypes[result]
            if value is NOT_CONST or want is NOT_CONST:
                held = call(d, "operands", made)
                alike = alike and call(d, "opkey", made) == self.info.key and len(held) == len(operands)
                alike = alike and all(call(d, "same", a, b) for a, b in zip(held, operands, strict=True))
            else:
                alike = alike and same_number(value, want)
            if not alike:
                raise Wrong(f"inline[{template!r}]", f"makes another node than build() for {shown}")

    def value(self, node: Any, depth: int = 0) -> Any:
        """The value that a node has by what the dialect says of it; NOT_CONST where that is none, or cannot be told."""
        value = const_value(self.dialect, node)
        if value is not NOT_CONST or depth > DEPTH:
            return value
        key = call(self.dialect, "opkey", node)
        info = next(
            (i for i in self.dialect.ops.values() if i.key == key and i.evaluate is not None and not i.fields), None
        )
        held = call(self.dialect, "operands", node)
        given = tuple(self.value(o, depth + 1) for o in held)
        if info is None or len(held) != len(info.params) or any(v is NOT_CONST for v in given):
            return NOT_CONST
        names = [self.name_of(o) for o in held]
        try:
            return evaluated(self.dialect, info, names, self.name_of(node), given)
        except Exception:  # it has none, or is of other dtypes
            return NOT_CONST

    def _node(
        self, node: Any, operands: tuple[Any, ...], others: tuple[Any, ...], result: str, given: tuple[Any, ...]
    ) -> None:
        d, info = self.dialect, self.info
        shown = self._shown(given)
        held = call(d, "operands", node)
        again = call(d, "operands", node)
        try:
            count, fresh = len(held), [a is not b for a, b in zip(held, again, strict=True)]
        except TypeError:
            raise Wrong("operands", f"of {shown} are {type(held).__name__}", "a sequence of nodes") from None
        if count != len(operands):
            raise Wrong("operands", f"{shown} has {count}", f"{len(operands)}")
        if any(fresh):
            raise Wrong(
                "operands",
                "are other objects each time they are asked for",
                "the same objects: nodes are told apart by identity",
            )
        orders = itertools.permutations(operands) if info.commutative else (operands,)
        if not any(all(call(d, "same", a, b) for a, b in zip(held, order, strict=True)) for order in orders):
            raise Wrong("operands", f"of {shown} are not those that it was built of", "the operands in their order")
        kind = call(d, "type", node)
        if kind != d.dtypes[result]:
            raise Wrong("type", f"of {shown} is {kind!r}", f"{d.dtypes[result]!r}")
        if not call(d, "same", node, node) or any(call(d, "same", node, o) for o in held):
            raise Wrong(
                "same", f"takes {shown} for one of its operands, or for none of itself", "whether nodes are equal"
            )
        self._rebuilt(node, held, others, shown)
        self.facts(node, given, result, shown)
        for other in (node, held[0], self.last):
            if other is not None:
                same_template(d, node, other, shown)
        remembered(
            d,
            [(n, s) for n, s in ((node, shown), (held[0], "an operand"), (self.last, "another node")) if n is not None],
        )
        self.last = node

    def _rebuilt(self, node: Any, held: Sequence[Any], others: tuple[Any, ...], shown: str) -> None:
        d, info = self.dialect, self.info
        for wanted in (tuple(held), others):
            made = call(d, "rebuild", node, wanted)
            value = call(d, "const_value", made) if made is not None else None
            if made is None or (value is NOT_CONST and call(d, "opkey", made) != info.key):
                what = "None" if made is None else f"a node of {call(d, 'opkey', made)!r}"
                raise Wrong("rebuild", f"of {shown} makes {what}", f"a node of {info.name} with the operands given")
            if value is not NOT_CONST:
                continue
            back = call(d, "operands", made)
            orders = itertools.permutations(wanted) if info.commutative else (wanted,)
            if len(back) != len(wanted) or not any(
                all(call(d, "same", a, b) for a, b in zip(back, order, strict=True)) for order in orders
            ):
                raise Wrong("rebuild", f"of {shown} does not have the operands that it was given")
            if call(d, "type", made) != call(d, "type", node):
                raise Wrong("rebuild", f"of {shown} has another type", "the type of the node")
            alike = all(call(d, "same", a, b) for a, b in zip(wanted, held, strict=True))
            if not alike and not info.commutative and call(d, "same", made, node):
                raise Wrong("same", f"takes {shown} for a node with other operands", "whether nodes are equal")

    def facts(self, node: Any, given: tuple[Any, ...], result: str, shown: str) -> None:
        """An error unless the facts of the dialect hold of a node over operands with these values."""
        if self.info.evaluate is None:
            return
        try:
            names = [self.name_of(o) for o in self.dialect.operands(node)]
            value: Any = evaluated(self.dialect, self.info, names, result, given)
        except NoValue:
            value = NoValue
        except Exception:  # said of the evaluator
            return
        case = Case(self.dialect, node, self.info.name, given, result, value, self.worlds.get(result, ()), shown)
        for mistake in node_mistakes(case):
            self.found.setdefault(mistake.field, mistake)

    def name_of(self, node: Any) -> str:
        kind = self.dialect.type(node)
        return next((n for n, d in self.dialect.dtypes.items() if d == kind), "")
