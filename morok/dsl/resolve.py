"""The state that patterns and expressions share while a rule is checked: types, names, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn

from morok.dialect import Dialect, OpInfo
from morok.dsl import syntax as S
from morok.dsl.checked import Sort
from morok.dsl.declared import Mistake, op_mistakes
from morok.dsl.infer import Clash, T, Types, universe
from morok.dsl.parse import suggest
from morok.dsl.scope import Bound, Value
from morok.dsl.structural import relate
from morok.errors import DialectError, RuleError, RuleTypeError, UnknownNameError

Report = Callable[..., RuleError]  # (class, message, span, expected=, hint=) -> error


class Stop(Exception):
    """The rule cannot be checked further; its errors have been reported."""


class Resolver:
    """The state of checking one rule."""

    def __init__(self, dialect: Dialect, make_error: Report) -> None:
        self.dialect = dialect
        self.universe = universe(dialect)
        self.types = Types(self.universe)
        self.make_error = make_error
        self.errors: list[RuleError] = []
        self.bound: dict[str, Bound] = {}
        self.typed: list[tuple[S.Syntax, T]] = []
        self.sorts: dict[int, Sort] = {}
        self.unbounded: list[tuple[S.Expr, tuple[T, ...]]] = []  # numbers that may be bounds of nodes of these types
        self.kept: list[S.Syntax] = []  # keeps the nodes alive whose ids are the keys of `sorts`
        self.constants: list[tuple[S.Expr, T]] = []  # values in operand position: their dtype must be determined
        self.asked: list[tuple[S.Expr, T, str, str]] = []  # dtypes in clauses, to be determined; description, hint
        # two constants of one name, and the place of the second
        self.equal_values: list[tuple[T, T, str, S.Syntax]] = []
        self.same_width: list[tuple[T, T]] = []
        # the lanes of the operands that a condition chooses among, and of the condition
        self.chosen: list[tuple[int, int]] = []
        self.addresses: list[T] = []  # operands whose default dtype is index
        # the classes, of elements and of lanes, that the pattern made
        self.matched: tuple[range, range] = (range(0), range(0))
        self.pointwise = True

    # errors

    def report(
        self, kind: type[RuleError], message: str, at: S.Syntax | S.Span, expected: str = "", hint: str = ""
    ) -> None:
        span = at if isinstance(at, S.Span) else at.span
        self.errors.append(self.make_error(kind, message, span, expected, hint))

    def fail(self, message: str, at: S.Syntax | S.Span, expected: str = "", hint: str = "") -> NoReturn:
        self.report(RuleTypeError, message, at, expected, hint)
        raise Stop

    def unknown(self, message: str, at: S.Syntax, name: str, known: Iterable[str], hint: str = "") -> NoReturn:
        self.report(UnknownNameError, message, at, hint=suggest(name, known) or hint)
        raise Stop

    @contextmanager
    def typing(self, what: str, at: S.Syntax, hint: str = "") -> Iterator[None]:
        """A block in which a Clash becomes an error at `at`, with `what` in front of its message."""
        outer, self.types.place = self.types.place, at
        try:
            yield
        except Clash as e:
            self.fail(f"{what} must be {e}", at, hint=hint)
        finally:
            self.types.place = outer

    def unify(self, found: T, wanted: T, what: str, at: S.Syntax) -> None:
        with self.typing(what, at):
            self.types.unify(found, wanted)

    def restrict(self, t: T, mask: int, what: str, at: S.Syntax, hint: str = "") -> None:
        with self.typing(what, at, hint):
            self.types.restrict(t.elem, mask)

    # records

    def note(self, node: S.Syntax, t: T) -> None:
        self.typed.append((node, t))

    def sort(self, node: S.Expr, sort: Sort) -> None:
        self.sorts[id(node)] = sort
        self.kept.append(node)

    # names

    def op(self, name: str, at: S.Syntax) -> OpInfo:
        info = self.dialect.ops.get(name)
        if info is None:
            hint = (
                "rules over several ops are written `for op in binary [Add, Mul] { ... }`" if name[:1].islower() else ""
            )
            self.unknown(f"there is no op `{name}`", at, name, self.dialect.ops, hint)
        wrong = op_mistakes(self.dialect, name)
        for mistake in wrong:
            self.misdeclared(mistake, at)
        if wrong:
            raise Stop
        return info

    def misdeclared(self, mistake: Mistake, at: S.Syntax) -> None:
        """Report a mistake of the dialect that a rule uses."""
        error = self.make_error(DialectError, mistake.text(self.dialect.name), at.span, mistake.expected, "")
        if isinstance(error, DialectError):
            error.op, error.field = mistake.op, mistake.field
        self.errors.append(error)

    def reserved(self, name: str) -> bool:
        return (
            name in self.universe.bits
            or name in self.universe.classes
            or name == "ptr"
            or self.universe.vector(name) is not None
        )

    def unused(self, name: str, at: S.Syntax) -> None:
        """An error if `let` or a comprehension binds a name again: proofs identify values by name."""
        if self.reserved(name) or name in self.types.named:
            self.fail(f"`{name}` is a dtype, not a variable", at, hint="dtype names are reserved words")
        if name in self.bound:
            self.fail(f"`{name}` is bound already", at, hint=f"at line {self.bound[name].span.line}")

    def bind(self, name: str, value: Value, at: S.Syntax, invalid_ok: bool = False, constant: bool = False) -> None:
        """Bind `name`. A node that is bound already must be the same node at both places, a constant an equal one."""
        if self.reserved(name):
            self.fail(f"`{name}` is a dtype, not a variable", at, hint="dtype names are reserved words")
        if name in self.types.named:
            self.fail(
                f"`{name}` is a dtype variable already",
                at,
                hint="dtype variables are capital letters, others small ones",
            )
        old = self.bound.get(name)
        if old is None:
            self.bound[name] = Bound(name, value, at.span, invalid_ok, constant)
            return
        if old.value.kind != value.kind or old.value.many != value.many:
            hint = f"it was bound at line {old.span.line} already"
            if {old.value.kind, value.kind} == {"const", "node"} and not (old.value.many or value.many):
                hint = (
                    f"`@const({name})` binds the value of a constant; `n @const({name})` its node too: write n for it"
                )
            self.fail(f"`{name}` stands for two kinds of things", at, hint=hint)
        if value.kind == "const" and value.type is not None and old.value.type is not None and not value.many:
            self.equal_values.append((old.value.type, value.type, name, at))
            return
        if value.kind in ("const", "int", "bool") and value.type is not None:
            self.fail(f"the value `{name}` is bound twice", at, hint="give it two names, and compare them in a guard")
        if value.type is not None and old.value.type is not None:
            self.unify(value.type, old.value.type, f"`{name}`", at)
        old.invalid_ok = old.invalid_ok or invalid_ok
        old.constant = old.constant or constant

    def settle_equal_values(self) -> None:
        """Unify the dtypes of constants of one name, once the whole pattern is typed. Integers keep theirs: they are equal as
        mathematical integers, at any two dtypes.
        """
        integral = self.universe.integral
        for first, second, name, at in self.equal_values:
            if (self.types.mask(first.elem) | self.types.mask(second.elem)) & ~integral:
                with self.typing(f"`@const({name})`", at, "constants that are no integers are equal at one dtype only"):
                    self.types.same_element(first.elem, second.elem)

    # dtypes

    def annotate(self, t: T, type_: S.TypeSyntax, what: str) -> bool:
        """Constrain `t` by the text behind a colon. Returns True if Invalid is allowed."""
        with self.typing(what, type_):
            return self._annotate(t, type_)

    def _annotate(self, t: T, type_: S.TypeSyntax) -> bool:
        types = self.types
        match type_:
            case S.TVector():
                if isinstance(type_.lanes, str):
                    self.lanes_name(type_.lanes, type_)
                types.same_lanes(types.lane(type_.lanes), t.lanes)
                return self._annotate(t, type_.element)
            case S.TPointer():
                t.form = "ptr"
                return self._annotate(T(t.elem, types.lane()), type_.base)
            case S.TMaybeInvalid():
                if (
                    not isinstance(type_.inner, S.TName)
                    or type_.inner.name != "index"
                    or "index" not in self.universe.bits
                ):
                    self.fail("only an index can be Invalid", type_, "`index?`")
                types.restrict(t.elem, self.universe.bits["index"])
                return True
            case S.TName(name="ptr"):
                t.form = "ptr"
                return False
            case S.TName():
                vector = None if type_.name in self.universe.bits else self.universe.vector(type_.name)
                if vector is not None:
                    types.same_lanes(types.lane(vector[1]), t.lanes)
                    types.restrict(t.elem, self.universe.bits[vector[0]])
                elif self.is_dtype_variable(type_.name):
                    types.same_element(self.dtype_variable(type_.name, type_), t.elem)
                else:
                    types.restrict(t.elem, self.mask(type_))
                return False
        if isinstance(type_, S.TUnion) and any(isinstance(o, S.TMaybeInvalid) for o in type_.options):
            options = tuple(o.inner if isinstance(o, S.TMaybeInvalid) else o for o in type_.options)
            types.restrict(t.elem, self.mask(S.TUnion(options, span=type_.span)))
            return True
        types.restrict(t.elem, self.mask(type_))
        return False

    def is_dtype_variable(self, name: str) -> bool:
        return name[:1].isupper() and not self.reserved(name)

    def dtype_variable(self, name: str, at: S.Syntax) -> int:
        if name in self.bound:
            self.fail(f"`{name}` is no dtype", at, hint=f"it is a variable bound at line {self.bound[name].span.line}")
        if name in self.dialect.ops:
            self.fail(f"`{name}` is an op, not a dtype", at)
        return self.types.variable(name)

    def lanes_name(self, name: str, at: S.Syntax) -> None:
        old = self.bound.get(name)
        if old is None:
            self.bind(name, Value("int"), at)
        elif old.value.kind != "int":
            self.fail(f"`{name}` is no number of lanes", at, hint=f"it was bound at line {old.span.line} already")

    def mask(self, type_: S.TypeSyntax) -> int:
        """The dtypes that a constraint without variables admits."""
        u = self.universe
        match type_:
            case S.TName():
                if type_.name in u.bits:
                    return u.bits[type_.name]
                if type_.name in u.classes:
                    return u.classes[type_.name]
                if self.is_dtype_variable(type_.name):
                    self.fail(
                        f"the dtype variable `{type_.name}` stands alone in a constraint",
                        type_,
                        "a dtype or a class of dtypes",
                    )
                hint = "dtype variables begin with a capital letter"
                self.unknown(f"there is no dtype `{type_.name}`", type_, type_.name, (*u.bits, *u.classes, "ptr"), hint)
            case S.TNot():
                left = u.any & ~self.mask(type_.inner)
                if not left:
                    self.fail("no dtype is left", type_)
                return left
            case S.TUnion():
                found = 0
                for o in type_.options:
                    found |= self.mask(o)
                return found
            case _:
                self.fail(
                    "vectors and pointers cannot be parts of a choice of dtypes", type_, "dtypes or classes of dtypes"
                )

    # ops

    def operand_types(self, info: OpInfo, slots: Mapping[str, list[T]], result: T, at: S.Syntax) -> None:
        """Relate the types of an op's operands (in `slots`, by operand name) and its result."""
        with self.typing(f"operands and result of {info.name}", at):
            if info.params:
                self._pointwise(info, slots, result)
                return
            if info.operands or info.fields:
                self.pointwise = False
            self.same_width += relate(info, self.types, slots, result)

    def _pointwise(self, info: OpInfo, slots: Mapping[str, list[T]], result: T) -> None:
        types = self.types
        letters: dict[str, int] = {}

        def word(w: str) -> int:
            if w not in info.domains:
                return types.element(self.universe.bits[w])
            if w not in letters:
                letters[w] = types.element(sum(self.universe.bits[d] for d in info.domains[w]))
            return letters[w]

        lanes = types.lane()
        for operand, w in zip(info.operands, info.params, strict=True):
            for t in slots.get(operand.name, ()):
                condition = operand.holds == "condition"
                types.unify(t, T(word(w), types.lane() if condition else lanes))
                self.chosen += [(lanes, t.lanes)] if condition else []
        types.unify(result, T(word(info.result), lanes))


def field_value(kind: str, t: T | None = None) -> Value:
    """The value of a name bound to a static field of this kind; `t`: the type of its node, of which the constants that a field
    holds are.
    """
    return {
        "ints": Value("int", many=True),
        "bools": Value("bool", many=True),
        "pairs": Value("other", many=True),
        "consts": Value("const", t, many=True),
        "int": Value("int"),
        "bool": Value("bool"),
        "op": Value("op"),
        "const": Value("const", t),
    }.get(kind, Value("other"))
