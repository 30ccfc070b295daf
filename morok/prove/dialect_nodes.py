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
from morok.prove.dialect_facts import Case, node_mistakes
from morok.prove.dialect_meanings import choices, evaluated, said
from morok.prove.dialect_values import few, misnumbered, same_number

FEW: Final = 6  # constants of a dtype that ops are built over
COMMON: Final = ("recall",)  # what is asked of every node that a graph holds, whatever ops a rule names

Values = Mapping[str, Sequence[Any]]  # some values of each dtype
Worlds = Mapping[str, Sequence[Any]]  # the encodings of each dtype


class Wrong(Exception):
    """A mistake that ends what is tried of an op. `constants`: of what reads the constants of every op."""

    def __init__(self, field: str, message: str, expected: str = "", constants: bool = False) -> None:
        super().__init__(message)
        self.mistake = Mistake("", field, message, expected, constants=constants)


def call(dialect: Dialect, method: str, *args: Any) -> Any:
    """The result of a method; Wrong where it raises."""
    try:
        return getattr(dialect, method)(*args)
    except Exception as problem:
        raise Wrong(method, f"raises {said(problem)}") from None


def const_value(dialect: Dialect, node: Any) -> Any:
    """The value of a constant, a number of Python's own; NOT_CONST of any other node."""
    value = call(dialect, "const_value", node)
    if value is not NOT_CONST and value is not None and (wrong := misnumbered(value)):
        raise Wrong("const_value", f"is {wrong}", "an int, a float or a bool", constants=True)
    return value


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
                    _same_template(dialect, a, b, f"constants of {name}")
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
            _same_template(dialect, a, b, f"constants of {name} and {other}")
    if nodes:
        first[name] = nodes[0]


def remembered(dialect: Dialect, a: Any, b: Any, shown: str, other: str) -> None:
    """An error where two nodes that are not the same carry one dict for derived facts, or one node carries several."""
    if "recall" not in dialect.inline and getattr(dialect, "recall", None) is None:
        return

    def held(node: Any) -> Any:
        if "recall" not in dialect.inline:
            return call(dialect, "recall", node)
        return filled(dialect, "recall", shown, n=node)

    if held(a) is not held(a):
        raise Wrong("recall", f"of {shown} is another dict each time", "the dict that the node carries")
    if held(a) is held(b) and not call(dialect, "same", a, b):
        raise Wrong("recall", f"is one dict for {shown} and {other}", "a dict of its own for each node")


def _same_template(dialect: Dialect, a: Any, b: Any, shown: str) -> None:
    """An error where the template for `same` differs from the method on two different nodes."""
    if "same" in dialect.inline and bool(filled(dialect, "same", shown, a=a, b=b)) != bool(dialect.same(a, b)):
        raise Wrong("inline['same']", f"is not what the method says of {shown}")


def constant(dialect: Dialect, name: str, value: Any) -> Any:
    made = call(dialect, "const", dialect.dtypes[name], value)
    back = const_value(dialect, made)
    if back is NOT_CONST or back is None:
        shown = "NOT_CONST" if back is NOT_CONST else "None"
        raise Wrong("const_value", f"of const({name}, {value!r}) is {shown}", f"{value!r}")
    if not same_number(back, value):
        raise Wrong("const", f"const_value(const({name}, {value!r})) is {back!r}", f"{value!r}, a value of {name} to the theory")
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
        raise Wrong("hash_consed", f"const({name}, {value!r}) is another object each time", "equal nodes that are one object")
    _constant_templates(dialect, name, value, made, key)
    return made


def _constant_templates(dialect: Dialect, name: str, value: Any, node: Any, key: Any) -> None:
    """An error where the templates differ from the methods on a constant."""
    op = dialect.inline.get("const_op")
    if op is not None and dialect.ops[op].key != key:
        raise Wrong("inline['const_op']", f"the constants' key is {key!r}, and {op}'s is {dialect.ops[op].key!r}")
    kind = dialect.type(node)
    wanted: dict[str, Any] = {
        "const_value": value,
        "scalar": getattr(dialect, "element", lambda d: d)(kind),
        "lanes": 1,
        "is_const": True,
    }
    for template in (t for t in dialect.inline if t.startswith("in.")):
        wanted[template] = name in dialect.classes.get(template[3:], frozenset((template[3:],)))
    holes = {"n": node, "v": value, "d": dialect.dtypes[name]}
    for template, said_ in wanted.items():
        if template in dialect.inline and (template != "is_const" or "Op." not in dialect.inline[template]):
            got = filled(dialect, template, repr(value), **holes)
            if not (same_number(got, said_) if template == "const_value" else got == said_):
                raise Wrong(f"inline[{template!r}]", f"is {got!r} for the constant {value!r} of {name}", repr(said_))
    if "const" in dialect.inline and not dialect.same(filled(dialect, "const", repr(value), **holes), node):
        raise Wrong("inline['const']", f"makes another node than const({name}, {value!r})")


def filled(dialect: Dialect, key: str, shown: str, **holes: Any) -> Any:
    """The value of a template with these values in its holes."""
    names = {k: f"hole_{k}" for k in ("n", "a", "b", "c", "op", "v", "d", "k")}
    scope = {**getattr(dialect, "names", {}), "_d": dialect, **{f"hole_{k}": v for k, v in holes.items()}}
    try:
        return eval(dialect.inline[key].format(**names), scope)
    except Exception as problem:
        raise Wrong(f"inline[{key!r}]", f"raises {said(problem)} for {shown}") from None


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
        for at in () if self.info.fields else choices(self.dialect, self.info):
            names = [at.get(p, p) for p in self.info.params]
            result = at.get(self.info.result, self.info.result)
            if all(n in self.values for n in names):
                self._at(names, result)
        if getattr(self.dialect, "closed_types", False) and not self.info.fields:
            self._closed()
        return list(self.found.values())

    def _closed(self) -> None:
        """An error where nodes of the op can be built at dtypes that it does not list, though the dialect denies it."""
        for names, result in self._unlisted():
            try:
                operands = tuple(self._some(n) for n in names)
                there = self.dialect.opkey(self.build(operands, result)) == self.info.key
            except Exception:  # it refuses, as it says
                continue
            if there:
                shown = ", ".join([*names, *([f"to {result}"] if takes_dtype(self.info) else [])])
                what = f"{self.info.name} can be built at {shown}, which it does not list"
                self.add(Mistake("", "closed_types", what, "an error, or closed_types = False"))
                return

    def _unlisted(self) -> Iterator[tuple[list[str], str]]:
        """Dtypes of the operands and of the result, one of which is not as the op lists them."""
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
                if value is not NOT_CONST:  # built as what it is
                    self._folded(node, names, result, given, value)
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
                node = self.build(tuple(constant(self.dialect, n, v) for n, v in zip(names, values, strict=True)), result)
                yield call(self.dialect, "const_value", node) is not NOT_CONST
            except Wrong:
                yield False

    def add(self, mistake: Mistake) -> None:
        common = mistake.constants or mistake.field in COMMON
        self.found.setdefault(mistake.field, mistake if common else replace(mistake, op=self.info.name))

    def build(self, operands: tuple[Any, ...], result: str) -> Any:
        given = self.dialect.dtypes[result] if takes_dtype(self.info) else None
        return call(self.dialect, "build", self.info.name, operands, {}, given)

    def is_plain(self, node: Any, name: str) -> bool:
        """True if a node is a constant of a dtype as `const` makes it, and no node of an op whose value is known."""
        some = self.values.get(name, ())
        key = call(self.dialect, "opkey", node)
        return bool(some) and bool(key == call(self.dialect, "opkey", constant(self.dialect, name, some[0])))

    def _folded(self, node: Any, names: Sequence[str], result: str, given: tuple[Any, ...], value: Any) -> None:
        """An error unless what is built as a constant, or said to be one, has the value of the op."""
        if self.info.evaluate is None:
            return
        try:
            want = evaluated(self.dialect, self.info, names, result, given)
        except NoValue:
            return
        except Exception:
            return  # said of the evaluator
        if not same_number(value, want):
            shown = f"{self.info.name}({', '.join(map(repr, given))})"
            if self.is_plain(node, result):
                raise Wrong("build", f"{shown} is built as {value!r}, and evaluates to {want!r}")
            what = f"of {shown} is {value!r}, and it evaluates to {want!r}"
            raise Wrong("const_value", what, "the value of a node, or NOT_CONST", constants=True)

    def _node(self, node: Any, operands: tuple[Any, ...], others: tuple[Any, ...], result: str, given: tuple[Any, ...]) -> None:
        d, info = self.dialect, self.info
        shown = f"{info.name}({', '.join(map(repr, given))})"
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
                "operands", "are other objects each time they are asked for", "the same objects: nodes are told apart by identity"
            )
        orders = itertools.permutations(operands) if info.commutative else (operands,)
        if not any(all(call(d, "same", a, b) for a, b in zip(held, order, strict=True)) for order in orders):
            raise Wrong("operands", f"of {shown} are not those that it was built of", "the operands in their order")
        kind = call(d, "type", node)
        if kind != d.dtypes[result]:
            raise Wrong("type", f"of {shown} is {kind!r}", f"{d.dtypes[result]!r}")
        if not call(d, "same", node, node) or any(call(d, "same", node, o) for o in held):
            raise Wrong("same", f"takes {shown} for one of its operands, or for none of itself", "whether nodes are equal")
        self._rebuilt(node, held, others, shown)
        self.facts(node, given, result, shown)
        self._templates(node, tuple(held), shown)

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

    def _templates(self, node: Any, held: tuple[Any, ...], shown: str) -> None:
        """An error unless the code templates agree with the methods and facts."""
        d, info = self.dialect, self.info
        holes = {"n": node, "a": node, "b": held[0], "op": info.key}
        for key in ("opkey", "type", "operands", "vmin", "vmax"):
            if key in d.inline:
                ask = d.facts.get(key) if key in ("vmin", "vmax") else getattr(d, key)
                one: Any = filled(d, key, shown, **holes)
                other: Any = None if ask is None else ask(node)
                if key == "operands":
                    alike = len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
                else:
                    alike = ask is None or one is other or one == other
                if not alike:
                    raise Wrong(f"inline[{key!r}]", f"is {one!r} for {shown}, and the method says {other!r}"[:300])
        for other in (node, held[0], self.last):
            if other is not None:
                _same_template(d, node, other, shown)
                remembered(d, node, other, shown, "another node")
        self.last = node
        for i, key in enumerate(("pointwise1", "pointwise2", "pointwise3")):
            if key in d.inline and len(held) == i + 1 and not info.converts:
                made = filled(d, key, shown, **holes | dict(zip("abc", held, strict=False)))
                if d.opkey(made) != info.key or not all(d.same(a, b) for a, b in zip(d.operands(made), held, strict=True)):
                    raise Wrong(f"inline[{key!r}]", f"makes another node than build() for {shown}")
