"""Mistakes in a dialect, as far as its declarations show: nothing is evaluated, no node is built.

Each mistake names the op and the field, and disables only the rules that use them. `morok.dialect.verify` finds mistakes that
show in evaluation.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from morok.dialect import Dialect, OpInfo
from morok.dsl.values import NAMES
from morok.errors import DialectError, Place

_TARGET: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_GENERATED: Final = re.compile(
    r"(?:[KDEFHTL]_|[nv]\d*(?:_|\Z)|[nv]g?m?\d|u_|t\d+\Z|_gap|match_|MATCH\Z|NUMBERS\Z|context\Z|steps\Z|_[dok]\Z)"
)
_ARITY: Final = {"unary": 1, "binary": 2, "ternary": 3}
# The placeholders of each code template, a letter each. Names in a template must be defined, except in those of _LOOSE.
_HOLES: Final = {
    "opkey": "n", "operands": "n", "type": "n", "scalar": "n", "same": "ab", "vmin": "n", "vmax": "n", "invalid": "n",
    "const_value": "n", "lanes": "n", "pointee": "n", "vector": "dk", "const": "vd", "is_const": "n", "recall": "n", "nests": "n",
}  # fmt: skip
_WORDS: Final = frozenset(("const_op", "invalid_op"))  # names of an op
_RETIRED: Final = frozenset(("split", "stands_for"))  # of former versions, now ignored
_LOOSE: Final = frozenset(("is_const", "recall", "nests"))  # templates of the engine: their names are not checked
_BUILDS: Final = {"pointwise1": ("op", "a"), "pointwise2": ("op", "a", "b"), "pointwise3": ("op", "a", "b", "c")}
_FACTS: Final = frozenset(("vmin", "vmax"))


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in the declarations of a dialect.

    op, field  its place; without an op, the dialect itself
    dtypes     if any, only the rules at these dtypes are disabled
    facts      if any, only the rules that use these facts are disabled
    constants  only the rules that match or build constants are disabled
    """

    op: str
    field: str
    message: str
    expected: str = ""
    dtypes: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    constants: bool = False

    @property
    def everything(self) -> bool:
        """True if it disables all rules of the dialect."""
        return not (self.op or self.dtypes or self.facts or self.constants)

    def text(self, dialect: str) -> str:
        where = f"op {self.op} of dialect {dialect}" if self.op else f"dialect {dialect}"
        return f"{where}: {self.field}: {self.message}"

    def error(self, dialect: str, place: Place | None = None) -> DialectError:
        return DialectError(self.text(dialect), op=self.op, field=self.field, place=place, expected=self.expected)


_known: dict[str, tuple[Any, Any, dict[str, tuple[Mistake, ...]]]] = {}


def op_mistakes(dialect: Dialect, name: str) -> tuple[Mistake, ...]:
    """The mistakes in the declaration of one op."""
    found = _known.get(dialect.name)
    if found is None or found[0] is not dialect or found[1] != list(dialect.ops.values()):
        found = _known[dialect.name] = (dialect, list(dialect.ops.values()), {})
    if name not in found[2]:
        found[2][name] = tuple(_op(dialect, name, dialect.ops[name]))
    return found[2][name]


def _op(dialect: Dialect, name: str, info: OpInfo) -> Iterator[Mistake]:
    def mistake(field: str, message: str, expected: str = "") -> Mistake:
        return Mistake(name, field, message, expected)

    if not _NAME.fullmatch(name):
        yield mistake("name", f"{name!r} is no name that rules could write", "letters, digits and _")
    if info.name != name:
        yield mistake("name", f"the op calls itself {info.name}", f"the name that `ops` has it by, {name}")
    clash = [n for n, other in dialect.ops.items() if n != name and other.key == info.key]
    if clash:
        yield mistake("key", f"{info.key!r} is the key of {' and '.join(clash)} too", "a key for each op")
    if len({o.name for o in info.operands}) < len(info.operands):
        yield mistake("operands", "two have one name", "a name for each operand")
    yield from _domains(dialect, info, mistake)
    if info.params:
        yield from _params(dialect, info, mistake)
    if info.params and info.fields:
        what = "an op with params means a function of its operands alone, and nodes that differ in a field are not told apart"
        yield mistake("fields", what, "() for fields, or for params")
    if info.kind and len(info.operands) != _ARITY[info.kind]:
        yield mistake("kind", f"a {info.kind} op of {len(info.operands)} operands", f"{_ARITY[info.kind]} operands")
    if info.commutative and (len(info.operands) != 2 or len(set(info.params)) > 1):
        yield mistake("commutative", "its operands cannot change places", "two operands of one type")
    if info.solver and not _TARGET.fullmatch(info.solver):
        yield mistake(
            "solver", f"{info.solver!r} is no place of a function", 'an import path, "package.module:function"'
        )


def _domains(dialect: Dialect, info: OpInfo, mistake: Any) -> Iterator[Mistake]:
    known = ", ".join(dialect.dtypes)
    for letter, names in info.domains.items():
        unknown = [n for n in names if n not in dialect.dtypes]
        if unknown:
            yield mistake(
                "domains", f"{letter} ranges over {', '.join(unknown)}, which is no dtype here", f"dtypes among {known}"
            )
        if not names:
            yield mistake("domains", f"{letter} ranges over nothing", f"dtypes among {known}")
        if letter in dialect.dtypes:
            yield mistake(
                "domains", f"{letter} is a dtype, and a letter that ranges over dtypes", "a letter that is no dtype"
            )


def _params(dialect: Dialect, info: OpInfo, mistake: Any) -> Iterator[Mistake]:
    count = len(info.operands)
    if any(o.many or o.optional for o in info.operands):
        yield mistake(
            "params", "the op takes as many operands as are given", "() where the number of operands is not fixed"
        )
    elif len(info.params) != count:
        yield mistake(
            "params", f"{len(info.params)} dtypes for {count} operands", "a letter or a dtype for each operand"
        )
    for field, words in (("params", info.params), ("result", (info.result,))):
        for word in dict.fromkeys(words):
            if word not in info.domains and word not in dialect.dtypes:
                what = f"{word} has no domain, and is no dtype" if word else "nothing says of which dtype it is"
                yield mistake(field, what, f"a letter of {', '.join(info.domains) or 'domains'}, or a dtype's name")


def dialect_mistakes(dialect: Dialect) -> list[Mistake]:
    """The mistakes in the declarations of the dialect besides its ops."""
    found: list[Mistake] = []
    if dialect.theory and not _TARGET.fullmatch(dialect.theory):
        expected = 'an import path, "package.module:Class"'
        found.append(Mistake("", "theory", f"{dialect.theory!r} is no place of a class", expected))
    seen: list[tuple[str, Any]] = []
    for name, dtype in dialect.dtypes.items():
        if not _NAME.fullmatch(name):
            expected = "letters, digits and _"
            found.append(Mistake("", "dtypes", f"{name!r} is no name that rules could write", expected, (name,)))
        same = [n for n, d in seen if d == dtype]
        if same:
            found.append(
                Mistake(
                    "", "dtypes", f"{same[0]} and {name} are equal", "a dtype of its own for each name", (same[0], name)
                )
            )
        seen.append((name, dtype))
    for name, members in dialect.classes.items():
        unknown = sorted(m for m in members if m not in dialect.dtypes)
        if unknown:
            found.append(
                Mistake(
                    "", "classes", f"{', '.join(unknown)} in {name} is no dtype", f"among {', '.join(dialect.dtypes)}"
                )
            )
    for name, function in dialect.facts.items():
        if not callable(function):
            found.append(Mistake("", "facts", f"{name} is no function", "a function of nodes", facts=(name,)))
    taken = sorted(n for n in getattr(dialect, "names", {}) if n in NAMES or _GENERATED.match(n))
    if taken:
        what = f"{', '.join(taken)} stands for something else in generated code"
        found.append(Mistake("", "names", what, "names that begin with two letters or more"))
    for key, template in dialect.inline.items():
        found += _template(dialect, key, template)
    return found


def _template(dialect: Dialect, key: str, template: Any) -> Iterator[Mistake]:
    op, fact = "", (key,) if key in _FACTS else ()
    start, _, rest = key.partition(".")
    field = f"inline[{key!r}]"
    if key in _RETIRED:
        return
    if key in _WORDS:
        if template not in dialect.ops:
            yield Mistake("", field, f"{template!r} is no op here", f"among {', '.join(dialect.ops)}")
        return
    holes: tuple[str, ...]
    if key in _HOLES:
        holes = tuple(_HOLES[key])
    elif key in _BUILDS:
        holes = _BUILDS[key]
    elif start == "build" and rest:
        op, holes = rest, ("a", "d")
    elif start == "attr" and rest:
        op, holes = rest.rpartition(".")[0], ("n",)
    elif start == "in" and rest:
        holes = ("n",)
    else:
        yield Mistake(
            "",
            field,
            "there is no such template",
            f"one of {', '.join([*_HOLES, *_BUILDS, 'build.OP', 'attr.NAME', 'in.CLASS'])}",
        )
        return
    if op and op not in dialect.ops:
        yield Mistake("", field, f"there is no op {op}", f"among {', '.join(dialect.ops)}")
        return
    expected = f"a Python expression of {', '.join('{' + h + '}' for h in holes)}"
    try:
        free = _free_names(template.format(**{h: f"hole_{h}" for h in holes}))
    except (KeyError, IndexError, ValueError, AttributeError) as problem:
        yield Mistake(
            op, field, f"{template!r} cannot be filled in: {type(problem).__name__} {problem}", expected, facts=fact
        )
        return
    except SyntaxError as problem:
        yield Mistake(op, field, f"{template!r} is no Python expression: {problem.msg}", expected, facts=fact)
        return
    if key in _LOOSE:
        return
    given = {*getattr(dialect, "names", {}), "_d", *(f"hole_{h}" for h in holes)}
    unknown = sorted(n for n in free if n not in given and not _builtin(n))
    if unknown:
        yield Mistake(
            op, field, f"{', '.join(unknown)} in {template!r} is known to nobody", "names that `names` has", facts=fact
        )


@lru_cache(maxsize=1024)  # templates are few, and asked of for each rule file
def _free_names(text: str) -> frozenset[str]:
    """The names that a Python expression reads and does not bind. SyntaxError if the text is none."""
    nodes = list(ast.walk(ast.parse(text, mode="eval")))
    bound = {a.arg for n in nodes if isinstance(n, ast.arguments) for a in n.args}
    bound |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return frozenset(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)) - bound


def _builtin(name: str) -> bool:
    return hasattr(builtins, name)
