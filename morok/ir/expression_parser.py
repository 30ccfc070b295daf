"""The parser of expression text: Lark's LALR automaton, which builds nodes as it recognizes phrases, without recursion."""

from __future__ import annotations

import enum
import functools
import json
import math
from pathlib import Path
from typing import Any, Final, NoReturn

from lark import Lark, Token, Transformer, UnexpectedInput, UnexpectedToken

from morok.caller import caller
from morok.errors import IRError, ParseError, Place
from morok.ir.dtype import AddrSpace, DType, dtype
from morok.ir.op import TABLE, AxisType, Op
from morok.ir.text import (
    _WITH_TYPE,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_LANES,
    MAX_TEXT,
    RESERVED,
    USUAL,
    WORDS,
    class_named,
    default_dtype,
    required,
)
from morok.ir.uop import UOp, vconst
from morok.locks import PARSER
from morok.names import did_you_mean, nearest

# The parser contains its builder, so that it parses one text at a time.
_GRAMMAR: Final = Path(__file__).with_name("expression.lark")

# The terminals of the grammar in words.
_TOKENS: Final = {
    "REF": "%name", "NUMBER": "a number", "NAME": "a name", "STRING": "a string", "LPAR": "`(`", "RPAR": "`)`", "COMMA": "`,`",
    "COLON": "`:`", "SEMICOLON": "`;`", "EQUAL": "`=`", "LSQB": "`[`", "RSQB": "`]`", "LANES": "lanes (x4)", "PTR": "ptr",
    "$END": "the end", "__ANON_0": "`..=`",
}  # fmt: skip
_OPERATORS: Final = frozenset("+-*/%&|^<>~!")


class _Literal:
    """A number or a bool whose dtype its position gives."""

    __slots__ = ("at", "value")

    def __init__(self, value: Any, at: Token) -> None:
        self.value = value
        self.at = at


class _Word:
    """A name that is a variable as an operand and a constant of the notation (`Loop`, `Add`, `i32`) as a field."""

    __slots__ = ("at",)

    def __init__(self, at: Token) -> None:
        self.at = at


class _Named:
    __slots__ = ("at", "name", "value")

    def __init__(self, at: Token, value: Any) -> None:
        self.name = str(at)
        self.value = value
        self.at = at


class _Alone:
    """A pointwise op of constants alone, which takes the dtype that its position requires. `value`: its first constant."""

    __slots__ = ("at", "op", "parts", "value")

    def __init__(self, at: Token, op: Op, parts: list[Any]) -> None:
        self.at, self.op, self.parts = at, op, parts
        self.value = parts[0].value


class _Mistake(Exception):
    """A mistake at a token, not yet located in a file."""

    def __init__(self, at: Token, message: str, expected: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.at, self.message, self.expected, self.hint = at, message, expected, hint


class _Builder(Transformer[Token, UOp]):
    """The bottom-up builder of nodes, with the names defined so far in the text."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self.defined: dict[str, Any] = {}
        self.variables: dict[str, UOp] = {}

    # phrases

    def start(self, parts: list[Any]) -> UOp:
        return self.node(parts[-1], None)

    def definition(self, parts: list[Any]) -> None:
        ref, value = parts
        if str(ref) in self.defined:
            raise _Mistake(ref, f"{ref} is defined twice")
        self.defined[str(ref)] = self.node(value, ref)

    def reference(self, parts: list[Any]) -> UOp:
        found = self.defined.get(str(parts[0]))
        if found is None:
            raise _Mistake(parts[0], f"{parts[0]} is not defined", hint=f"write `{parts[0]} = ...;` in front")
        assert isinstance(found, UOp)
        return found

    def number(self, parts: list[Any]) -> _Literal:
        return _Literal(_number(parts[0]), parts[0])

    def string(self, parts: list[Any]) -> str:
        try:
            text = json.loads(str(parts[0]), strict=False)
        except ValueError:
            raise _Mistake(parts[0], "not a string", expected="escapes as in JSON") from None
        assert isinstance(text, str)
        return text

    def word(self, parts: list[Any]) -> Any:
        name = str(parts[0])
        if name == "true" or name == "false":
            return _Literal(name == "true", parts[0])
        if name == "Invalid":
            return UOp.invalid_at()
        return _Word(parts[0])

    def sequence(self, parts: list[Any]) -> tuple[Any, ...]:
        return tuple([self.field(p) for p in parts if p is not None])

    def named(self, parts: list[Any]) -> _Named:
        return _Named(parts[0], parts[1])

    def bounds(self, parts: list[Any]) -> tuple[Any, Any]:
        lo, hi = parts
        return (None if lo is None else _number(lo)), (None if hi is None else _number(hi))

    def named_type(self, parts: list[Any]) -> DType:
        given = parts[0]
        return given if isinstance(given, DType) else _dtype(given)

    def pointer(self, parts: list[Any]) -> DType:
        base, size, space, lanes = parts
        where = AddrSpace.GLOBAL
        if space is not None:
            if str(space) not in {s.value for s in AddrSpace}:
                raise _Mistake(space, f"{space} is no address space", expected="global, local or reg")
            where = AddrSpace(str(space))
        length = -1
        if size is not None:
            number = _number(size)
            if not isinstance(number, int) or number < -1:
                raise _Mistake(size, f"{size} is no size", expected="a number of elements")
            length = number
        pointer: DType = base.ptr(length, where)
        return pointer if lanes is None else pointer.vec(_lanes(lanes, str(lanes)[1:]))

    def variable(self, parts: list[Any]) -> UOp:
        at, d, *rest = parts
        name = str(at)
        if name in Op.__members__:
            if name != "Invalid":
                raise _Mistake(at, f"{name} is an op", expected="its operands in parentheses, or a name for a variable")
            invalid: UOp = self.make(at, Op.Invalid, [], d)
            return invalid
        if name in RESERVED or "." in name or _is_dtype(name):
            raise _Mistake(at, f"{name} is reserved", expected="another name for a variable")
        lo, hi = rest[0] if rest else (None, None)
        var: UOp = self.checked(at, lambda: UOp.var(name, d, lo, hi))
        self.variables[name] = var
        return var

    def call(self, parts: list[Any]) -> Any:
        at, *arguments = parts
        op, given = self.op(at), [a for a in arguments if a is not None]
        if isinstance(op, Op) and _is_alone(op, given):
            return _Alone(at, op, given)
        return self.make(at, op, given, None)

    def typed_call(self, parts: list[Any]) -> Any:
        at, *arguments, d = parts
        return self.make(at, self.op(at), [a for a in arguments if a is not None], d)

    # meaning

    def op(self, at: Token) -> Op | type:
        name = str(at)
        found = Op.__members__.get(name) or class_named(name)
        if found is None:
            raise _Mistake(at, f"there is no op {name}", expected="an op, such as Add or Where", hint=_nearest(name))
        return found

    def node(self, part: Any, at: Token | None, want: DType | None = None) -> UOp:
        if isinstance(part, UOp):
            return part
        if isinstance(part, _Literal):
            return _constant(part, want)
        if isinstance(part, _Alone):
            return self.alone(part, default_dtype(part.value) if want is None else want)
        if isinstance(part, _Word):
            found = self.variables.get(str(part.at))
            if found is None:
                known = WORDS.get(str(part.at), None)
                hint = (
                    ""
                    if known is not None or _is_dtype(str(part.at))
                    else f"write `{part.at}: index` where it first stands"
                )
                raise _Mistake(part.at, f"{part.at} is no variable", expected="an operand", hint=hint)
            return found
        raise _Mistake(getattr(part, "at", at) or _START, f"{_kind(part)} is no operand", expected="an expression")

    def field(self, part: Any) -> Any:
        if isinstance(part, _Literal):
            return part.value
        if isinstance(part, _Alone):
            return self.node(part, part.at)
        if isinstance(part, _Word):
            name = str(part.at)
            if name in WORDS:
                return WORDS[name]
            if _is_dtype(name):
                return _dtype(part.at)
            owner, _, member = name.rpartition(".")
            choices = class_named(owner)
            if choices is not None and issubclass(choices, enum.Enum) and member in choices.__members__:
                return choices[member]
            kinds = f"a number, a list, a string, a dtype, an op, or one of {', '.join(a.name for a in AxisType)}"
            raise _Mistake(part.at, f"{name} is no value of a field", expected=kinds)
        if isinstance(part, _Named):
            raise _Mistake(part.at, f"{part.name}= is no value of a field")
        return part

    def make(self, at: Token, op: Op | type, arguments: list[Any], own: DType | None) -> Any:
        named: dict[str, _Named] = {}
        positional: list[Any] = []
        for a in arguments:
            if isinstance(a, _Named):
                if a.name in named:
                    raise _Mistake(a.at, f"{a.name}= is given twice")
                named[a.name] = a
            elif named:
                raise _Mistake(at, f"{at}: an argument after {next(iter(named))}=", expected="named arguments last")
            else:
                positional.append(a)
        if not isinstance(op, Op):
            if positional:
                raise _Mistake(at, f"{at} takes named arguments only")
            values = {n: self.field(a.value) for n, a in named.items()}
            return self.checked(at, lambda: op(**values))
        if op is Op.Const or op is Op.VConst:
            return self.constant(at, op, positional, named)
        entry = TABLE[op]
        src: list[Any] = positional
        arg: Any = None
        if op in _WITH_TYPE:
            if not positional:
                raise _Mistake(at, f"{at} takes an operand and a dtype")
            *src, last = positional
            own = self.field(last)
            if not isinstance(own, DType):
                raise _Mistake(at, f"{at}: the last argument is {_kind(last)}", expected="a dtype")
        elif op is Op.Index:
            arg = "gate" in named
            if arg:
                src = [*positional, named.pop("gate").value]
        elif entry.fields:
            usual = USUAL.get(op, {})
            needed = [f for f in entry.fields if f not in named and f not in usual]
            if len(positional) < len(needed):
                raise _Mistake(at, f"{at}: {', '.join(needed)} missing", expected=_signature(op))
            split = len(positional) - len(needed)
            src = positional[:split]
            given = {f: self.field(v) for f, v in zip(needed, positional[split:], strict=True)}
            values = {
                f: self.field(named.pop(f).value) if f in named else given.get(f, usual.get(f)) for f in entry.fields
            }
            parts = tuple(values.values())
            arg = parts[0] if len(parts) == 1 else parts
        if named:
            stray = next(iter(named.values()))
            raise _Mistake(stray.at, f"{at} has no field {stray.name}", expected=_signature(op))
        operands = self.operands(at, op, src, own)
        return self.checked(at, lambda: UOp.new(op, operands, arg, own), _signature(op))

    def operands(self, at: Token, op: Op, parts: list[Any], own: DType | None) -> tuple[UOp, ...]:
        known = [None if isinstance(p, _Literal | _Alone) else self.node(p, at).dtype for p in parts]
        if None not in known:
            return tuple([self.node(p, at) for p in parts])
        values = [p.value if isinstance(p, _Literal | _Alone) else None for p in parts]
        want = required(TABLE[op], known, values, own)
        return tuple([self.node(p, at, w) for p, w in zip(parts, want, strict=True)])

    def alone(self, root: _Alone, want: DType) -> UOp:
        """An op of constants alone at a dtype."""
        order = [root]
        for part in order:  # grows while it runs
            order.extend([p for p in part.parts if isinstance(p, _Alone)])
        made: dict[_Alone, UOp] = {}
        for part in reversed(order):
            operands = tuple([made[p] if isinstance(p, _Alone) else _constant(p, want) for p in part.parts])
            made[part] = self.checked(part.at, functools.partial(UOp.new, part.op, operands), _signature(part.op))
        return made[root]

    def constant(self, at: Token, op: Op, parts: list[Any], named: dict[str, _Named]) -> UOp:
        if len(parts) != 2 or named:
            raise _Mistake(
                at, f"{at} takes a value and a dtype", expected=f"{at}({'3' if op is Op.Const else '[1, 2]'}, i32)"
            )
        d = self.field(parts[1])
        if not isinstance(d, DType):
            raise _Mistake(at, f"{at}: the last argument is {_kind(parts[1])}", expected="a dtype")
        if op is Op.Const:
            if not isinstance(parts[0], _Literal):
                raise _Mistake(at, f"{at} of {_kind(parts[0])}", expected="a number, true or false")
            return _constant(parts[0], d)
        lanes = parts[0]
        if not isinstance(lanes, tuple) or not lanes or d.count not in (1, len(lanes)):
            raise _Mistake(at, f"{at} takes one value a lane", expected="VConst([1, 2], i32x2)")
        scalar = d.scalar()
        values = [_constant(_Literal(v, at), scalar).arg for v in lanes]
        return vconst(scalar, values)

    def checked(self, at: Token, make: Any, expected: str = "") -> Any:
        try:
            return make()
        except IRError as problem:
            raise _Mistake(at, problem.message, problem.expected or expected, problem.hint) from None
        except (TypeError, ValueError) as problem:
            raise _Mistake(at, f"{at}: {problem}", expected) from None


def _is_alone(op: Op, parts: list[Any]) -> bool:
    """True if a call's operands are constants alone, and its dtype is theirs."""
    signature = TABLE[op].signature
    if signature is None or {*signature.params, signature.result} != {"T"} or len(parts) != len(signature.params):
        return False
    return all(isinstance(p, _Literal | _Alone) for p in parts)


_START: Final = Token("NAME", "", start_pos=0, line=1, column=1)


def _kind(part: Any) -> str:
    if isinstance(part, UOp | _Alone):
        return "an expression"
    if isinstance(part, _Literal):
        return str(part.at)
    if isinstance(part, (_Word, _Named)):
        return str(part.at)
    return "a list" if isinstance(part, tuple) else "a string" if isinstance(part, str) else f"{part}"


def _number(at: Token) -> int | float:
    text = str(at)
    if len(text) > MAX_DIGITS:
        raise _Mistake(at, "the number is too long", expected=f"at most {MAX_DIGITS} digits")
    bare = text.lstrip("+-")
    if bare == "nan":
        return math.nan
    return int(text) if bare.isdecimal() else float(text)


def _constant(part: _Literal, want: DType | None) -> UOp:
    v = part.value
    if want is None:
        return UOp.const(v)
    scalar = want.scalar()
    if scalar.is_bool != isinstance(v, bool) or not (isinstance(v, (bool, int, float))):
        raise _Mistake(
            part.at,
            f"{_text(v)} is no {scalar}",
            expected="true or false" if scalar.is_bool else f"a number of dtype {want}",
        )
    if scalar.is_integral and isinstance(v, float):
        raise _Mistake(part.at, f"{_text(v)} is no {scalar}", expected="an integer")
    if scalar.is_int and not scalar.min <= v <= scalar.max:
        raise _Mistake(part.at, f"{v} does not fit {scalar}", expected=f"{scalar.min} to {scalar.max}")
    if not (scalar.is_bool or scalar.is_number or scalar.is_float):
        raise _Mistake(part.at, f"{want} has no constants", expected="bool, an integer, index or a float")
    return UOp.const(v, want)


def _text(v: Any) -> str:
    return "true" if v is True else "false" if v is False else str(v)


def _is_dtype(name: str) -> bool:
    try:
        dtype(name)
    except (KeyError, ValueError):
        return False
    return True


def _lanes(at: Token, digits: str) -> int:
    if len(digits) > 6 or not 1 <= int(digits) <= MAX_LANES:
        raise _Mistake(at, f"{digits} lanes", expected=f"1 to {MAX_LANES}")
    return int(digits)


def _dtype(at: Token) -> DType:
    name = str(at)
    base, x, digits = name.rpartition("x")
    if x and digits.isdecimal() and _is_dtype(base):
        return dtype(base).vec(_lanes(at, digits))
    try:
        return dtype(name)
    except (KeyError, ValueError):
        raise _Mistake(
            at, f"there is no dtype {name}", expected="bool, i8 to i64, u8 to u64, f16 to f64, index, f32x4, ptr(f32)"
        ) from None


def _signature(op: Op) -> str:
    entry = TABLE[op]
    operands = [o.name + (".." if o.many else "?" if o.optional else "") for o in entry.operands]
    return f"{op.name}({', '.join([*operands, *entry.fields])})"


def _nearest(name: str) -> str:
    names = {n.lower(): n for n in Op.__members__}
    return did_you_mean([names[n] for n in nearest(name.lower(), names)])


@functools.cache
def _parser() -> tuple[Lark, _Builder]:
    builder = _Builder()
    lark = Lark(_GRAMMAR.read_text(), parser="lalr", lexer="contextual", maybe_placeholders=True, transformer=builder)
    return lark, builder


def _error(text: str, file: str, position: int, message: str, expected: str = "", hint: str = "") -> ParseError:
    position = max(0, min(position, len(text)))
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : len(text) if end < 0 else end]
    column = position - start
    # a window of a long line, so that the caret is seen
    left = max(0, column - 60)
    shown = "".join([c if c.isprintable() else " " for c in line[left : left + 120]])
    excerpt = f"  {shown}\n  {' ' * (column - left)}^"
    place = Place(file, text.count("\n", 0, position) + 1, column + 1)
    return ParseError(message, place=place, excerpt=excerpt, expected=expected, hint=hint)


def _refuse(text: str, file: str, problem: UnexpectedInput) -> NoReturn:
    position = problem.pos_in_stream
    at = len(text) if position is None or position < 0 else position
    if isinstance(problem, UnexpectedToken):
        what = "the text ends here" if problem.token.type == "$END" else f"unexpected {str(problem.token)[:40]!r}"
        if problem.token.type == "$END":
            at = len(text.rstrip())
        names = problem.accepts or problem.expected
    else:
        what = f"unexpected {text[at : at + 1]!r}"
        names = getattr(problem, "allowed", None) or set()
    operator = what.startswith("unexpected") and text[at : at + 1] in _OPERATORS
    hint = "an operation is written as an op with operands, such as Add(x, 1)" if operator else ""
    expected = ", ".join(
        sorted(_TOKENS.get(n, n) for n in names if n not in ("COMMENT",) and not n.startswith("__IGNORE"))
    )
    raise _error(text, file, at, what, expected, hint) from None


def _check_size(text: str, file: str) -> None:
    if len(text) > MAX_TEXT:
        raise _error("", file, 0, f"the text has {len(text)} characters", f"at most {MAX_TEXT}")
    zero = text.find("\0")
    if zero >= 0:
        raise _error(text, file, zero, "a NUL character")
    if text.count("(") + text.count("[") > MAX_DEPTH:
        depth = 0
        for i, c in enumerate(text):
            depth += (c in "([") - (c in ")]")
            if depth > MAX_DEPTH:
                raise _error(text, file, i, "brackets nest too deep", f"at most {MAX_DEPTH} open at once")


def parse(text: str, file: str = "<text>") -> UOp:
    """The graph that `text` denotes, in the notation of rules. ParseError, with line and column, for any other text.

    >>> morok.parse("Add(x: i32, 1)").dtype
    i32
    """
    if not isinstance(text, str):
        raise ParseError(f"{type(text).__name__} is no text", place=caller(), expected="a str")
    _check_size(text, file)
    lark, builder = _parser()
    with PARSER:
        builder.clear()
        try:
            result = lark.parse(text)
        except _Mistake as problem:
            raise _error(
                text, file, problem.at.start_pos or 0, problem.message, problem.expected, problem.hint
            ) from None
        except UnexpectedInput as problem:
            _refuse(text, file, problem)
        finally:
            builder.clear()
    assert isinstance(result, UOp)
    return result
