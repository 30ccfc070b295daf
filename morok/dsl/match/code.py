"""Generated Python as trees of `ast`: expressions that are made once, statements, and the lines where they stand.

An expression is hash-consed: the same kind with the same parts is one object, which is never changed, so that clauses are
compared by identity.
"""

from __future__ import annotations

import ast
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

LOAD: Final = ast.Load()
STORE: Final = ast.Store()
_COMPARISONS: Final[Mapping[str, ast.cmpop]] = {
    "==": ast.Eq(), "!=": ast.NotEq(), "<": ast.Lt(), "<=": ast.LtE(), ">": ast.Gt(), ">=": ast.GtE(), "is": ast.Is(),
    "is not": ast.IsNot(), "in": ast.In(),
}  # fmt: skip
BINARY: Final[Mapping[str, ast.operator]] = {
    "+": ast.Add(), "-": ast.Sub(), "*": ast.Mult(), "//": ast.FloorDiv(), "%": ast.Mod(), "&": ast.BitAnd(), "|": ast.BitOr(),
    "^": ast.BitXor(),
}  # fmt: skip
UNARY: Final[Mapping[str, ast.unaryop]] = {"-": ast.USub(), "~": ast.Invert(), "not": ast.Not()}
_CALLS: Final = (ast.Call, ast.ListComp, ast.SetComp)
# the fields of statements whose expressions stand on their first line
VALUES: Final = frozenset(("test", "iter", "value"))
BLOCKS: Final = ("body", "handlers", "orelse")  # the fields with statements, in the order in which they are printed
_AND: Final = ast.And()
_OR: Final = ast.Or()


class Code:
    """The expressions of one module, each made once."""

    def __init__(self) -> None:
        self._made: dict[tuple[Any, ...], ast.expr] = {}
        self._templates: dict[str, ast.expr] = {}
        self.calling: set[Any] = set()  # the expressions that contain a call
        self.none = self.constant(None)
        self.true = self.constant(True)

    def name(self, name: str) -> ast.expr:
        found = self._made.get((name,))
        return self._kept((name,), ast.Name(name, LOAD)) if found is None else found

    def constant(self, value: Any) -> ast.expr:
        """A literal; infinities and NaN have names."""
        if value.__class__ is float and (value != value or value in (float("inf"), float("-inf"))):
            return self.name("_nan") if value != value else self.infinity(value)
        key = (ast.Constant, value.__class__, repr(value))
        found = self._made.get(key)
        return self._kept(key, ast.Constant(value)) if found is None else found

    def infinity(self, value: Any) -> ast.expr:
        return self.name("_inf") if value == float("inf") else self.unary("-", self.name("_inf"))

    def call(self, function: ast.expr | str, *arguments: ast.expr) -> ast.expr:
        key = (ast.Call, function, arguments)
        found = self._made.get(key)
        if found is None:
            called = self.name(function) if isinstance(function, str) else function
            found = self._kept(key, ast.Call(called, list(arguments), []))
        return found

    def attribute(self, of: ast.expr, name: str) -> ast.expr:
        return self._once((ast.Attribute, of, name), lambda: ast.Attribute(of, name, LOAD))

    def item(self, of: ast.expr, index: ast.expr | int) -> ast.expr:
        key = (ast.Subscript, of, index)
        found = self._made.get(key)
        if found is None:
            at = self.constant(index) if isinstance(index, int) else index
            found = self._kept(key, ast.Subscript(of, at, LOAD))
        return found

    def part(self, of: ast.expr, start: ast.expr | None, stop: ast.expr | None) -> ast.expr:
        """The items from `start` to before `stop`."""
        if start is None and stop is None:
            return of
        return self.item(of, self._once((ast.Slice, start, stop), lambda: ast.Slice(start, stop)))

    def star(self, of: ast.expr) -> ast.expr:
        return self._once((ast.Starred, of), lambda: ast.Starred(of, LOAD))

    def tuple_of(self, items: Sequence[ast.expr]) -> ast.expr:
        return self._once((ast.Tuple, *items), lambda: ast.Tuple(list(items), LOAD))

    def list_of(self, items: Sequence[ast.expr]) -> ast.expr:
        return self._once((ast.List, *items), lambda: ast.List(list(items), LOAD))

    def dict_of(self, items: Mapping[ast.expr, ast.expr]) -> ast.expr:
        return self._once((ast.Dict, *items.items()), lambda: ast.Dict(list(items), list(items.values())))

    def compare(self, left: ast.expr, *rest: ast.expr | str) -> ast.expr:
        """A comparison, or a chain of them: operand, operator, operand .."""
        key = (ast.Compare, left, rest)
        found = self._made.get(key)
        if found is None:
            ops = [_COMPARISONS[op] for op in rest[::2] if isinstance(op, str)]
            found = self._kept(key, ast.Compare(left, ops, [e for e in rest if isinstance(e, ast.expr)]))
        return found

    def binary(self, left: ast.expr, op: str, right: ast.expr) -> ast.expr:
        return self._once((ast.BinOp, left, op, right), lambda: ast.BinOp(left, BINARY[op], right))

    def plus(self, left: ast.expr, offset: int) -> ast.expr:
        """`left` and a number, which may be negative or 0."""
        if not offset:
            return left
        return self.binary(left, "+" if offset > 0 else "-", self.constant(abs(offset)))

    def unary(self, op: str, operand: ast.expr) -> ast.expr:
        return self._once((ast.UnaryOp, op, operand), lambda: ast.UnaryOp(UNARY[op], operand))

    def all_of(self, conditions: Sequence[ast.expr]) -> ast.expr:
        """The conjunction of one or more conditions, tested in order."""
        if len(conditions) == 1:
            return conditions[0]
        return self._once((ast.And, *conditions), lambda: ast.BoolOp(_AND, list(conditions)))

    def any_of(self, conditions: Sequence[ast.expr]) -> ast.expr:
        """The disjunction of conditions, tested in order."""
        return self._once((ast.Or, *conditions), lambda: ast.BoolOp(_OR, list(conditions)))

    def choice(self, condition: ast.expr, yes: ast.expr, no: ast.expr) -> ast.expr:
        return self._once((ast.IfExp, condition, yes, no), lambda: ast.IfExp(condition, yes, no))

    def assigned(self, name: str, value: ast.expr) -> ast.expr:
        """`name := value`."""
        return self._once((ast.NamedExpr, name, value), lambda: ast.NamedExpr(_stored(name), value))

    def each(
        self, body: ast.expr, names: Sequence[str], source: ast.expr, condition: ast.expr | None = None
    ) -> ast.expr:
        """The list of `body` for each item of `source`."""
        return self._once(
            (ast.ListComp, body, *names, source, condition),
            lambda: ast.ListComp(body, [_loop(names, source, condition)]),
        )

    def distinct(self, body: ast.expr, names: Sequence[str], source: ast.expr) -> ast.expr:
        """The set of `body` for each item of `source`."""
        return self._once((ast.SetComp, body, *names, source), lambda: ast.SetComp(body, [_loop(names, source, None)]))

    def filled(self, template: str, **holes: ast.expr) -> ast.expr:
        """A code template of a dialect with these expressions in its braces."""
        key = (template, *holes.values())
        found = self._made.get(key)
        if found is None:
            tree = self._templates.get(template)
            if tree is None:
                fields = {field for _, field, _, _ in string.Formatter().parse(template) if field}
                text = template.format(**{field: f"hole_{field}" for field in fields})
                tree = self._templates[template] = ast.parse(text, mode="eval").body
            found = self._made[key] = self._filled(tree, {f"hole_{name}": e for name, e in holes.items()})
        return found

    def _filled(self, part: Any, holes: Mapping[str, ast.expr]) -> Any:
        if isinstance(part, list):
            return [self._filled(p, holes) for p in part]
        if not isinstance(part, ast.AST):
            return part
        if isinstance(part, ast.Name):
            return holes[part.id] if part.id in holes else self.name(part.id)
        made = part.__class__(**{name: self._filled(value, holes) for name, value in ast.iter_fields(part)})
        return self._kept((made,), made) if isinstance(made, ast.expr) else made

    def _kept(self, key: tuple[Any, ...], made: ast.expr) -> ast.expr:
        self._made[key] = made
        _place(made, -1)
        calling = self.calling
        if isinstance(made, _CALLS):
            calling.add(made)
        else:
            for part in made.__dict__.values():
                if part in calling if part.__class__ is not list else not calling.isdisjoint(part):
                    calling.add(made)
                    break
        return made

    def _once(self, key: tuple[Any, ...], make: Callable[[], ast.expr]) -> ast.expr:
        found = self._made.get(key)
        return self._kept(key, make()) if found is None else found


def _loop(names: Sequence[str], source: ast.expr, condition: ast.expr | None) -> ast.comprehension:
    return ast.comprehension(target(*names), source, [] if condition is None else [condition], 0)


def target(*names: str) -> ast.expr:
    """The target of an assignment: a variable, or several."""
    if len(names) == 1:
        return _stored(names[0])
    several = ast.Tuple(list(map(_stored, names)), STORE)
    _place(several, -1)
    return several


def _stored(name: str) -> ast.Name:
    made = ast.Name(name, STORE)
    _place(made, -1)
    return made


# Statements.


def assign(names: Sequence[str], value: ast.expr) -> ast.stmt:
    """`name = value`, or several names for the items of a value."""
    return ast.Assign([target(*names)], value)


def attempt(body: list[ast.stmt], failures: ast.expr, instead: list[ast.stmt], otherwise: list[ast.stmt]) -> ast.stmt:
    """A `try` of `body`, with the statements for one of these exceptions, and for none."""
    return ast.Try(body, [ast.ExceptHandler(failures, None, instead)], otherwise, [])


def function(name: str, parameters: Sequence[str], body: list[ast.stmt]) -> ast.stmt:
    given = [ast.arg(p) for p in parameters]
    for p in given:
        _place(p, -1)
    arguments = ast.arguments([], given, None, [], [], None, [])
    return ast.FunctionDef(name, arguments, body, [], None)


def expression(e: ast.expr) -> ast.stmt:
    return ast.Expr(e)


def title(text: str) -> ast.stmt:
    """A string as a statement: for readers, since the compiler leaves it out."""
    said = ast.Constant(text)
    _place(said, -1)
    return ast.Expr(said)


def lines_of(body: Sequence[ast.stmt]) -> int:
    """The number of lines that statements are printed on."""
    lines = 0
    for s in body:
        lines += 1
        for name in BLOCKS:
            if block := getattr(s, name, None):
                lines += lines_of(block) + _else_line(s, name)
    return lines


def _else_line(s: ast.stmt, name: str) -> int:
    """1 if a block begins with a line of its own, `else:`; that of an `elif` does not."""
    return name == "orelse" and not (isinstance(s, ast.If) and len(s.orelse) == 1 and isinstance(s.orelse[0], ast.If))


class Located:
    """Statements as a module, each on the line where `ast.unparse` prints it. One that stands in several places is copied, and
    so is an expression that calls something; other expressions cannot fail, and need no line for a traceback.
    """

    def __init__(self, code: Code, body: Sequence[ast.stmt]) -> None:
        self.calling = code.calling
        self.line = 1
        self.module = ast.Module(self.block(body), [])

    def block(self, body: Sequence[ast.AST]) -> list[Any]:
        return list(map(self.statement, body))

    def statement(self, given: ast.AST) -> Any:
        """The statement, or the handler of a `try`, on this line and those behind it."""
        s: Any = _copy(given) if "lineno" in given.__dict__ else given
        if isinstance(s, ast.FunctionDef):
            self.line += self.line > 1  # an empty line stands before it
        _place(s, self.line)
        fields = s.__dict__
        for name in VALUES & fields.keys():
            fields[name] = self.expression(fields[name])
        self.line += 1
        for name in BLOCKS:
            if block := fields.get(name):
                self.line += _else_line(s, name)
                fields[name] = self.block(block)
        return s

    def expression(self, e: Any) -> Any:
        """The expression, on this line if it calls something."""
        if e not in self.calling:
            return e
        made = _copy(e)
        _place(made, self.line)
        fields = made.__dict__
        for name in made._fields:
            part = fields.get(name)
            if part.__class__ is list:
                fields[name] = list(map(self.expression, part))
            elif part.__class__ is not str:
                fields[name] = self.expression(part)
        return made


def _copy(node: Any) -> Any:
    made = node.__class__.__new__(node.__class__)
    made.__dict__.update(node.__dict__)
    return made


def _place(node: Any, line: int) -> None:
    fields = node.__dict__
    fields["lineno"] = fields["end_lineno"] = line
    fields["col_offset"] = fields["end_col_offset"] = -1
