"""From rows to a decision tree, as Python text: a test of several rows is made once, and the rows keep their order.

The rows of one op are cut into spans. In a span one test is made first, and for each of its outcomes the rows that are left
(those that agree with it, and those that do not care) are treated in the same way. A row whose tests nobody shares is
written out where its turn comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from morok.dialect import Dialect, OpInfo
from morok.dsl.emit import Tail, node_name, value_name
from morok.dsl.rows import (
    Accessors,
    CodeTest,
    LiteralTest,
    OpTest,
    Path,
    Test,
    TypeTest,
    ValidTest,
    Variant,
    gap_name,
    gaps_before,
    key_name,
    looks_at_sequence,
    step_index,
)

Lines = list[str]
NEAR = 1  # how deep a node may lie for rows that do not look at it to be written twice
SHORT = 3  # a tail of so many lines is repeated rather than called


Key = tuple[str, Path] | Test  # what rows share a test by


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: `tests` are those not yet known to hold."""

    name: str
    number: int
    variant: Variant
    tests: tuple[Test, ...]
    tail: Tail

    def left_with(self, tests: Iterable[Test]) -> Row:
        """The row where only these tests are still to be made."""
        return Row(self.name, self.number, self.variant, tuple(tests), self.tail)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row's tail stands, so far indented; `depth` levels."""

    row: Row
    depth: int


class Constants:
    """The sets and tables that generated code looks values up in."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name(self, prefix: str, text: str) -> str:
        return self._names.setdefault(text, f"{prefix}_{len(self._names)}")

    def lines(self) -> Lines:
        return [f"{name} = {text}" for text, name in self._names.items()]


class Tests:
    """The text of tests."""

    def __init__(self, dialect: Dialect, constants: Constants) -> None:
        self.dialect = dialect
        self.access = Accessors(dialect)
        self.constants = constants

    def text(self, test: Test) -> str:
        match test:
            case OpTest():
                return f"{self.access.opkey(node_name(test.path))} {self.access.equal} {key_name(test.op)}"
            case ValidTest():
                return f"not {self.access.inline['invalid'].format(n=node_name(test.path))}"
            case TypeTest():
                return self.of_type(test)
            case LiteralTest():
                return self.literal(test)
            case CodeTest():
                names = [node_name(p) for p in test.paths]
                values = {f"v{i}": value_name(p) for i, p in enumerate(test.paths)}
                table = self.constants.name("T", f"frozenset(({test.table},))") if test.table else ""
                return test.template.format(*names, **values, table=table)

    def of_type(self, test: TypeTest) -> str:
        node = node_name(test.path)
        if test.known is not None:
            wanted = test.allowed & test.known
            for name, template in self.access.inline.items():
                if not name.startswith("in."):
                    continue
                members = self.dialect.classes.get(name[3:], frozenset((name[3:],))) & test.known
                if members == wanted:
                    return template.format(n=node)
                if test.known - members == wanted:
                    return f"not {template.format(n=node)}"
        scalar = self.access.scalar(node)
        if len(test.allowed) == 1:
            return f"{scalar} {self.access.equal} D_{next(iter(test.allowed))}"
        members_text = ", ".join(f"D_{n}" for n in sorted(test.allowed))
        return f"{scalar} in {self.constants.name('T', f'frozenset(({members_text},))')}"

    def literal(self, test: LiteralTest) -> str:
        v = value_name(test.path)
        floats = test.dtypes & self.dialect.classes.get("float", frozenset())
        if test.kind == "zero":
            return f"{v} == 0 and not ({v}.__class__ is float and _sign(1.0, {v}) < 0)" if floats else f"{v} == 0"
        if test.kind == "one":
            return f"{v} == 1"
        if test.kind in ("true", "false"):
            return f"{v} is {test.kind.title()}"
        if test.text == "nan":
            return f"{v} != {v}"
        written = float(test.text) if test.kind == "float" else int(test.text)
        if written == 0 and test.kind == "float":
            return f"{v} == 0.0 and _sign(1.0, {v}) {'<' if test.text.startswith('-') else '>'} 0"
        values = {n: self.dialect.const_value(self.dialect.const(self.dialect.dtypes[n], written)) for n in sorted(test.dtypes)}
        distinct = set(values.values())
        if len(distinct) == 1:
            return f"{v} == {_literal(distinct.pop())}"
        table = ", ".join(f"D_{n}: {_literal(x)}" for n, x in values.items())
        return f"{v} == {self.constants.name('L', '{' + table + '}')}.get({self.access.scalar(node_name(test.path))})"


def _literal(value: object) -> str:
    return {"inf": "_inf", "-inf": "-_inf", "nan": "_nan"}.get(repr(value), repr(value))


class Tree:
    """Writes the function of one op."""

    def __init__(self, dialect: Dialect, tests: Tests, op: OpInfo | None, counting: bool = False) -> None:
        self.dialect = dialect
        self.counting = counting
        self.tests = tests
        self.access = tests.access
        self.op = op
        self.lines: list[str | Place] = []
        self.written = 0
        self.most = 0

    def function(self, name: str, rows: Sequence[Row]) -> Lines:
        """The function, behind those of its tails that are long and stand in it more than once."""
        self.most = 400 + 8 * len(rows)
        self.block(rows, set(), 1)
        uses = Counter(id(line.row.tail) for line in self.lines if isinstance(line, Place))
        called = {id(r.tail): r for r in reversed(rows) if uses[id(r.tail)] > 1 and len(r.tail.lines) > SHORT}
        out: Lines = []
        for row in rows:
            if called.get(id(row.tail)) is row:
                out += [f"def {name}_{tail_name(row)}(context, {self.parameters(row)}):"]
                lines = row.tail.lines
                head = _head(row.tail)
                if head:  # tested where it is called
                    lines = [line[4:] for line in lines[len(head) :]]
                out += [f"    {line}" for line in [f"# {row.name}", *lines]]
                out += ["", ""]
        out.append(f"def {name}(n, context):")
        for line in self.lines or ["    return None"]:
            if isinstance(line, Place):
                text = self.call(name, line.row) if id(line.row.tail) in called else [f"# {line.row.name}", *line.row.tail.lines]
                out += ["    " * line.depth + t for t in text]
            else:
                out.append(line)
        return [*out, "", ""]

    def parameters(self, row: Row) -> str:
        names = [node_name(p) for p in sorted(row.tail.nodes | {()})] + [value_name(p) for p in sorted(row.tail.values)]
        head = _head(row.tail)
        names += [line.partition(" = ")[0] for line in head if _calls_helper(line)]
        names += map(gap_name, range(len(row.variant.gaps)))
        return ", ".join(names)

    # text

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def branch(self, rows: Sequence[Row], known: set[str], depth: int) -> None:
        before = len(self.lines)
        self.block(rows, known, depth)
        if len(self.lines) == before:
            self.put(depth, "pass")

    def block(self, rows: Sequence[Row], known: set[str], depth: int) -> None:
        known = set(known)
        rows = list(rows)
        while rows:
            key = self.choose(rows)
            if key is None:
                first = rows.pop(0)
                self.row(first, known, depth)
                if not first.tests and first.tail.certain:
                    return  # what stands below it never gets its turn
                continue
            end = self.reach(rows, key)
            span, rows = rows[:end], rows[end:]
            self.switch(key, span, known, depth)

    def choose(self, rows: Sequence[Row]) -> Key | None:
        """The test to make first: of the first row's tests that can be made now the one that most rows share."""
        if self.written > self.most:
            return None
        best, most = None, 1
        for t in _available(rows[0]):
            key = _key(t)
            if key is None or key == best:
                continue
            count = sum(1 for r in rows[: self.reach(rows, key)] if _makes(r, key))
            if count > most:
                best, most = key, count
        return best

    def reach(self, rows: Sequence[Row], key: Key) -> int:
        """For how many of the rows a test is made at once. About the root and its operands: up to the last row that makes it, so
        that those in between are written once for each outcome. Further down: while every row makes it.
        """
        paths = (key[1],) if isinstance(key, tuple) else key.paths
        if max(map(len, paths)) > NEAR:
            return next((i for i, r in enumerate(rows) if not _makes(r, key)), len(rows))
        return 1 + max(i for i, r in enumerate(rows) if _makes(r, key))

    def switch(self, key: Key, span: Sequence[Row], known: set[str], depth: int) -> None:
        first = next(t for t in span[0].tests if _key(t) == key)
        for p in first.paths:
            self.load_node(p, span[0].variant, known, depth)
        self.load_values(first, known, depth)
        if not isinstance(first, OpTest):
            yes = [r.left_with([t for t in r.tests if _key(t) != key]) for r in span]
            no = [r for r in span if all(_key(t) != key for t in r.tests)]
            self.put(depth, f"if {self.tests.text(first)}:")
            self.branch(yes, known, depth + 1)
            if no:
                self.put(depth, "else:")
                self.branch(no, known, depth + 1)
            return
        path = first.path
        rows_of = Counter(t.op for r in span for t in r.tests if isinstance(t, OpTest) and t.path == path)
        ops = [op for op, _ in rows_of.most_common()]  # what most rules are about is what is met most often
        opkey = self.access.opkey(node_name(path))
        if len(ops) > 2:
            self.put(depth, f"op = {opkey}")
            opkey = "op"
        for i, op in enumerate(ops):
            rows = [r for r in (_with_op(r, path, op) for r in span) if r is not None]
            self.put(depth, f"{'elif' if i else 'if'} {opkey} {self.access.equal} {key_name(op)}:")
            self.branch(rows, known, depth + 1)
        rest = [r for r in span if not any(isinstance(t, OpTest) and t.path == path for t in r.tests)]
        if rest:
            self.put(depth, "else:")
            self.branch(rest, known, depth + 1)

    def row(self, row: Row, known: set[str], depth: int) -> None:
        self.written += 1
        tail = row.tail
        conditions: list[str] = []

        def flush() -> None:
            nonlocal depth, known
            if conditions:
                self.put(depth, f"if {' and '.join(conditions)}:")
                conditions.clear()
                depth += 1
                known = set(known)  # what is loaded from here on, is loaded inside this `if`

        def enter(number: int) -> None:  # try the ends of a sequence
            nonlocal depth, known
            flush()
            gap = row.variant.gaps[number]
            self.load_node(gap.path, row.variant, known, depth)
            end = gap.end.format(node_name(gap.path))
            if gap.pinned:
                self.put(depth, f"{gap_name(number)} = {end} - {gap.after}")
            else:
                stop = f"{end} - {gap.after - 1}" if gap.after > 1 else end
                self.put(depth, f"for {gap_name(number)} in range({gap.first}, {stop}):")
                depth += 1
            known = set(known)  # another row may have another sequence of this number

        told = not self.counting
        entered = 0

        def tell() -> None:  # the ops have not ruled the rule out: it is tried
            nonlocal told
            flush()
            self.put(depth, f"_tried({row.number})")
            told = True

        for test in sorted(row.tests, key=lambda t: (gaps_before(t), looks_at_sequence(t))):
            while entered < gaps_before(test):
                enter(entered)
                entered += 1
            if not told and not isinstance(test, OpTest):
                tell()
            if self.missing(test, known):
                flush()
                for p in test.paths:
                    self.load_node(p, row.variant, known, depth)
                self.load_values(test, known, depth)
            text = self.tests.text(test)
            conditions.append(f"({text})" if " or " in text else text)
        for number in range(entered, len(row.variant.gaps)):
            enter(number)
        flush()
        if not told:
            tell()
        for p in sorted(tail.nodes):
            self.load_node(p, row.variant, known, depth)
        for p in sorted(tail.values):
            self.load_value(p, row.variant, known, depth)
        self.lines.append(Place(row, depth))

    def call(self, name: str, row: Row) -> Lines:
        """The call of a row's tail, as a function beside the function `name`."""
        head = _head(row.tail)
        call = f"{name}_{tail_name(row)}(context, {self.parameters(row)})"
        lines = [f"return {call}"] if row.tail.certain else [f"hit = {call}", "if hit is not None:", "    return hit"]
        return [*head, *(f"    {line}" for line in lines)] if head else lines

    # variables

    def missing(self, test: Test, known: set[str]) -> bool:
        return any(node_name(p) not in known and p for p in test.paths) or any(value_name(p) not in known for p in _values(test))

    def load_node(self, path: Path, variant: Variant, known: set[str], depth: int) -> None:
        if not path or node_name(path) in known:
            return
        parent = path[:-1]
        self.load_node(parent, variant, known, depth)
        op = variant.ops.get(parent) if parent else (self.op.name if self.op is not None else variant.ops.get(()))
        info = self.dialect.ops.get(op) if op is not None else None
        operands = self.access.operands(node_name(parent))
        if info is not None and len(info.operands) > 1 and not any(o.many or o.optional for o in info.operands):
            names = [node_name((*parent, i)) for i in range(len(info.operands))]
            self.put(depth, f"{', '.join(names)} = {operands}")
            known.update(names)
        else:
            self.put(depth, f"{node_name(path)} = {operands}[{step_index(path[-1])}]")
            known.add(node_name(path))

    def load_values(self, test: Test, known: set[str], depth: int) -> None:
        for p in _values(test):
            if value_name(p) not in known:
                self.put(depth, f"{value_name(p)} = {self.access.value(node_name(p))}")
                known.add(value_name(p))

    def load_value(self, path: Path, variant: Variant, known: set[str], depth: int) -> None:
        if value_name(path) not in known:
            self.load_node(path, variant, known, depth)
            self.put(depth, f"{value_name(path)} = {self.access.value(node_name(path))}")
            known.add(value_name(path))


def _head(tail: Tail) -> list[str]:
    """The part of a tail that is done where it is called, which spares most calls: its first test, and the helper's call before
    it.
    """
    first, *more = tail.lines
    if first.startswith("if "):
        return [first]
    name = first.partition(" = ")[0]
    return [first, more[0]] if _calls_helper(first) and more and more[0] == f"if {name} is not None:" else []


def _calls_helper(line: str) -> bool:
    return " = H_" in line


def tail_name(row: Row) -> str:
    return f"rule_{row.number}_{row.tail.order}"


def _values(test: Test) -> tuple[Path, ...]:
    """The constants whose values a test reads."""
    if isinstance(test, LiteralTest):
        return (test.path,)
    if isinstance(test, CodeTest):
        return tuple(p for i, p in enumerate(test.paths) if f"{{v{i}}}" in test.template)
    return ()


def _key(test: Test) -> Key | None:
    """The key by which rows share a test: for ops the node alone, since one look at its op decides for all of them."""
    return ("op", test.path) if isinstance(test, OpTest) else None if isinstance(test, LiteralTest) else test


def _makes(row: Row, key: Key) -> bool:
    return any(_key(t) == key for t in row.tests)


def _available(row: Row) -> list[Test]:
    """The tests of a row that can be made now: nothing that must be known before is still open."""
    out = []
    for i, test in enumerate(row.tests):
        if gaps_before(test):
            continue
        waits = any(
            (isinstance(t, (OpTest, CodeTest)) and any(_above(q, p) for q in t.paths for p in test.paths))
            or (isinstance(t, OpTest) and t.path in _values(test))
            for t in row.tests[:i]
        )
        if not waits:
            out.append(test)
    return out


def _above(q: Path, p: Path) -> bool:
    return len(q) < len(p) and p[: len(q)] == q


def _with_op(row: Row, path: Path, op: str) -> Row | None:
    tests = []
    for t in row.tests:
        if isinstance(t, OpTest) and t.path == path:
            if t.op != op:
                return None
        else:
            tests.append(t)
    return row.left_with(tests)


__all__ = ["Constants", "Row", "Tests", "Tree"]
