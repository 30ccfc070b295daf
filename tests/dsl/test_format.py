"""The canonical layout: it means the same, it is its own canonical layout, and no comment is lost."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morok.dsl import syntax as S
from morok.dsl.check import check_text
from morok.dsl.format import WIDTH, format_file, format_rule, format_text
from morok.dsl.lexer import MAX_NAME
from morok.dsl.parse import parse_text
from morok.dsl.syntax_text import quote
from morok.errors import RuleError

ROOT = Path(__file__).parents[2]
RULES = sorted((ROOT / "rules").glob("**/*.rules"))
EXAMPLES = sorted((ROOT / "examples").glob("**/*.rules"))


@pytest.mark.sampled(30)
@pytest.mark.parametrize("path", RULES, ids=lambda p: p.stem)
def test_built_in_rules(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    once = format_text(text, str(path))
    assert format_text(once) == once
    assert parse_text(once) == parse_text(text)
    assert [w for line in once.split("\n") for w in line.split() if w == "#"] == [
        w for line in text.split("\n") for w in line.split() if w == "#"
    ]


UGLY = """\
# A file.

# About the dialect.
dialect   morok
helpers "m"   # where they are
group g   "doc"  "of a group"
# above a
a  :  Add [ x,@zero ]~>x   assuming nsz  # behind a


# above b, and a blank line before it

b: Idiv(x:index,@const(n)) # behind the pattern
  # above the guard
  if n>0 and
     vmin( x )>=0 # behind the guard
  let c=n*2 , d = c  let e = d
  ~> Idiv( x,e )   # behind the target
  "doc"   # behind the doc
for op in binary[Add,Mul]{ # behind the block
  # above c
  c:op(x,y)~>op(y,x)
  # at the end of the block
}  # behind its end
extern f( x:index )->( y:index )?   # behind the helper
  requires x>0 # behind what it requires
  ensures y<x
d: Neg(x: index) let y = f(x) => y
# at the end
"""

NEAT = """\
# A file.

# About the dialect.
dialect morok
helpers "m"  # where they are

extern f(x: index) -> (y: index)?  # behind the helper
    requires x > 0  # behind what it requires
    ensures y < x

group g "doc of a group"

# above a
a: Add[x, @zero] ~> x assuming nsz  # behind a

# above b, and a blank line before it

b: Idiv(x: index, @const(n))  # behind the pattern
    # above the guard
    if n > 0 and vmin(x) >= 0  # behind the guard
    let c = n * 2, d = c, e = d
    ~> Idiv(x, e)  # behind the target
    "doc"  # behind the doc
for op in binary [Add, Mul] {  # behind the block
    # above c
    c: op(x, y) ~> op(y, x)
    # at the end of the block
}  # behind its end
d: Neg(x: index)
    let y = f(x)
    => y
# at the end
"""


def test_layout() -> None:
    assert format_text(UGLY) == NEAT
    assert format_text(NEAT) == NEAT
    assert parse_text(UGLY) == parse_text(NEAT)


LAYOUT = {
    "brackets": ("Add[x: int, @const(a)] if (a + 1) * 2 - (3 - 4) == -(a) and not (a < 1 or a > 2) ~> x", None),
    "shifts": ("Add[x: int, @const(a)] if (1 << a) - 1 == 1 << (a - 1) ~> x", None),
    "chains": ("Add[x: int, @const(a)] if 0 <= a < 3 ~> x", None),
    "shorthand": (
        "Reduce{src,ranges:rs,op}~>Reduce{src:src,ranges:rs,op:op}",
        "Reduce { src, ranges: rs, op } ~> Reduce { src, ranges: rs, op }",
    ),
    "types": ("Add(x:(i8|float),y:!float)~>Add(y,x)", "Add(x: (i8 | float), y: !float) ~> Add(y, x)"),
    "vectors": ("Neg(x: T x n)~>Neg(x)", "Neg(x: T x n) ~> Neg(x)"),
    "choices": ("(Add|Mul)[x:int,@zero|@one]~>x", "(Add | Mul)[x: int, @zero | @one] ~> x"),
    "binding a choice": ("n @ (Neg(x) | Abs(x)) ~> n", None),
    "sequences": ("Vectorize(a,rest..)~>Vectorize(rest..)", "Vectorize(a, rest..) ~> Vectorize(rest..)"),
    "comprehension": (
        "Vectorize(xs..)~>Vectorize([Neg(x) for (x) in xs])",
        "Vectorize(xs..) ~> Vectorize(Neg(x) for x in xs)",
    ),
    "ranges": (
        "Vectorize(xs..) if all(i > 0 for i in 0 .. len(xs)) ~> xs[0]",
        "Vectorize(xs..) if all(i > 0 for i in 0..len(xs)) ~> xs[0]",
    ),
    "optional": (
        "Load{index,alt:Some(a)}~>Load{index,alt:a}",
        "Load { index, alt: Some(a) } ~> Load { index, alt: a }",
    ),
}


@pytest.mark.parametrize("name", LAYOUT)
def test_rule_layout(name: str) -> None:
    text, expected = LAYOUT[name]
    assert format_text(f"group g\n\nr: {text}\n") == f"group g\n\nr: {(expected or text).replace('-(a)', '-a')}\n"


LONG = """\
extern runs(at: seq, same: seq, base: index, a_value_with_a_long_name: any, another_value_with_a_long_name: any)
    -> (rs: seq, order: seq)
    ensures all(
        any(
            sum(len(rs[q]) for q in 0..r) + j == order[k] and at[rs[r][j]] == at[k]
                and (len(same) == 0 or same[rs[r][j]] == same[k] and at[rs[r][j]] != a_number_with_a_long_name)
            for j in 0..len(rs[r]))
        for k in 0..len(at))

group g

operands: Vectorize(
        Gep(a_vector_with_a_long_name, [0]),
        Gep(a_vector_with_a_long_name, [1]),
        Gep(a_vector_with_a_long_name, [2]),
        Gep(a_vector_with_a_long_name, [3]))
    ~> a_vector_with_a_long_name
fields: n @ Load { index: Index { buffer: a_buffer_with_a_long_name, indices: [i: index], gate: Some(a_gate: bool) }, alt: None }
    if lanes(i) > 1 and (lanes(n) == lanes(i) or lanes(a_buffer_with_a_long_name) == lanes(i)) and lanes(a_gate) == lanes(n) + 100
        and defined(i)
    let w = lanes(i) - 1,
        others = Store {
            index: Index { buffer: a_buffer_with_a_long_name, indices: [Gep(i, [l for l in 0..w])] },
            value: Gep(n, [l % lanes(n) for l in 0..w]) }
    ~> Cat(
        Load { index: Index { buffer: a_buffer_with_a_long_name, indices: [Gep(i, [l])], gate: a_gate }, dtype: dtype(n, 1) }
        for l in 0..lanes(i) if l != w)
"""


def test_what_is_too_long_is_broken_from_the_outside_in() -> None:
    one_line = " ".join(LONG.replace("Vectorize(\n        ", "Vectorize(").split())
    for head in ("ensures", "extern", "group", "operands", "fields"):
        one_line = one_line.replace(f" {head}", f"\n{head}")
    assert max(map(len, one_line.split("\n"))) > 2 * WIDTH
    assert format_text(one_line) == LONG
    assert format_text(LONG) == LONG


def test_a_list_may_be_an_item_of_a_list() -> None:
    text = "group g\n\nr: Neg(x) if f([[i for i in 0..3]], [x, [i for i in 0..3]], [i for i in 0..3]) ~> x\n"
    (rule,) = parse_text(text).groups[0].items
    assert isinstance(rule, S.Rule)
    (guard,) = rule.clauses
    assert isinstance(guard, S.If)
    assert isinstance(guard.condition, S.ECall)
    loop = S.EComprehension(S.EName("i"), ("i",), S.ERange(S.ENumber(0, "0"), S.ENumber(3, "3"), False))
    assert guard.condition.args == (S.EList((loop,)), S.EList((S.EName("x"), loop)), loop)
    assert format_text(text) == text
    with pytest.raises(RuleError, match="alone in its brackets"):
        parse_text("group g\n\nr: Neg(x) if f([x, i for i in 0..3]) ~> x\n")


def test_names_alone_stand_many_on_a_line() -> None:
    names = [f"a_vector_{i}" for i in range(20)]
    made = format_text(f"group g\n\nr: Vectorize({', '.join(names)}) ~> a_vector_0\n").split("\n")
    assert made[2] == "r: Vectorize("
    assert made[3] == f"        {', '.join(names[:10])},"
    assert made[4] == f"        {', '.join(names[10:19])},"
    assert made[5] == f"        {', '.join(names[19:])})"
    assert made[6] == "    ~> a_vector_0"


def test_examples_are_broken_at_the_arrow_and_in_brackets() -> None:
    term = "Reduce(Where(Lt(Range(8, 0, Reduce), c: index), Const(1, i32), Const(0, i32)), Range(8, 0, Reduce), Add)"
    text = f"group g\n\nr: Neg(Neg(x)) ~> x\n    example {term} ~> {term}\n    example Neg({term}, {term}) ~> x: i32\n"
    made = format_text(text)
    assert made.split("\n")[3:] == [
        f"    example {term}",
        f"        ~> {term}",
        "    example Neg(",
        f"            {term},",
        f"            {term})",
        "        ~> x: i32",
        "",
    ]
    assert parse_text(made) == parse_text(text)
    assert format_text(made) == made


@pytest.mark.parametrize("depth", [60, 70, 1000])
@pytest.mark.parametrize("end", ["x: i32", "Add(x: i32, [1, y])"])
def test_examples_may_nest_as_deep_as_nodes(depth: int, end: str) -> None:
    """Deeper than brackets of rules: what is inside stays on one line."""
    example = f"{'Neg(' * depth}{end}{')' * depth} ~> x: i32"
    once = format_text(f'group g "g"\n\nr: Neg(Neg(x: i32)) ~> x\n    example {example}\n')
    assert format_text(once) == once
    assert re.sub(r"\s", "", once.partition("example")[2]) == re.sub(r"\s", "", example)


def test_strings_and_comments_in_examples() -> None:
    text = 'group g\n\nr: Neg(Neg(x)) ~> x\n    example f("(", [  # why\n        1]) ~> x: i32\n'
    ((rule,),) = (g.items for g in parse_text(text).groups)
    assert isinstance(rule, S.Rule)
    assert rule.examples == (S.Example('f("(", [1])', "x: i32"),)
    assert format_text(text) == 'group g\n\nr: Neg(Neg(x)) ~> x\n    example f("(", [1]) ~> x: i32  # why\n'


@pytest.mark.parametrize("path", [*RULES, *EXAMPLES], ids=lambda p: p.stem)
def test_no_line_is_too_long(path: Path) -> None:
    assert [line for line in path.read_text(encoding="utf-8").split("\n") if len(line) > WIDTH] == []


def test_long_docs_are_broken() -> None:
    doc = " ".join(['many "words"'] * 40)
    made = format_text(f"group g\n\nr: Neg(Neg(x)) ~> x\n    {quote(doc)}\n")
    assert max(map(len, made.split("\n"))) <= WIDTH
    (rule,) = parse_text(made).groups[0].items
    assert isinstance(rule, S.Rule)
    assert rule.doc == doc


def test_quotes_in_docs() -> None:
    text = r'''group g "a \"b\" \\ c"''' + "\n"
    assert parse_text(text).groups[0].doc == 'a "b" \\ c'
    assert format_text(text) == text


def test_one_rule() -> None:
    text = 'group g\n\n# why\nr: Neg( Neg(x) )~>x  # what\n   "doc"\n   example Neg(Neg(x: i32)) ~> x: i32\n'
    (rule,) = parse_text(text).groups[0].items
    assert isinstance(rule, S.Rule)
    assert format_rule(rule) == "r: Neg(Neg(x)) ~> x"
    assert format_rule(rule, doc=True) == 'r: Neg(Neg(x)) ~> x\n    "doc"'


def test_checked_rules_can_be_printed() -> None:
    text = """group g

a: Cast(x: A, B) ~> Cast(x, B)
b: Gep(x, [0, i]) if i > 0 ~> Gep(x, [i, 0])
c: Where(c, x: index?, Invalid) ~> Where(Not(c), Invalid, x)
d: Reduce { src, ranges: [Range(e), rest..], op: Add } if vmin(e) == 1 ~> Reduce { src, ranges: rest, op: Add }
"""
    checked = check_text(text)
    group = S.Group("g", "", None, tuple(r.syntax for r in checked.rules()))
    again = check_text(format_file(S.File("", "morok", None, (), (group,))))
    assert [r.syntax for r in again.rules()] == [r.syntax for r in checked.rules()]


_PLACES = re.compile(
    r"""
    \S, \S                                                   # behind a comma
    | \S\ (?:and|or|for|if|within|assuming|->|~>|[=!]=|<<|>>|//|<=|>=|[-+*%&^|<>])\ \S # in front of an operator
    | (?<!@const)\w\([^\s)] | \[[^\s\]] | \{ [^\s}]           # behind a bracket that encloses a list
    """,
    re.VERBOSE,
)


def _formatted(text: str) -> str:
    """The canonical layout, which means the same, is its own layout, and has no line that is too long and can be broken."""
    made = format_text(text)
    assert parse_text(made) == parse_text(text)
    assert format_text(made) == made
    for line in made.split("\n"):
        assert len(line) <= WIDTH or not _PLACES.search(line), line
    return made


NESTED = [
    "r: Neg(Add[Mul[a: (i32 | i64), N(b, Gep(c, [0, 1]))], N @ Gep(d, [2])]: int) ~> N",
    "r: Load { index: N @ Index { buffer: b, gate: Some(Not(N)) }, alt: None } ~> N { src: f(N, 1), ranges: [a, Neg(N)] }",
    "r: Neg(N) | Abs(Neg(N)) if all(f(k, N) for k in 0..len(N) if g(N)) and (f(g(N)) or N[g(N)] + g(N) == 1) ~> N",
    "r: Neg(x) let a = f(g(N)), (b, N) = h(N, f(a)) => f(N, g(a, [N, f(N)])) within 2 ulp assuming nsz, N, nnan",
    f"r: {'Neg(' * 40}(N | Add)(f(N), g(N)){')' * 40} ~> f(f(N), f(g(N))[h(N)], [f(k) for k in f(N)..g(h(N), 1) + 1])",
    "r: Neg(x) ~> x\n    example f(N, g(N, [N, f(N)])) ~> f(N, h(f(N)))",
    "for op in binary [Add, N, Mul, N] { r: op(x, y) ~> op(f(N), [f(g(N))]) }",
    "extern f(N: index, b: (N | (N x 4))) -> (c: ptr(ptr(N)), N: seq)? requires f(N) ensures f(g(N)) and g(N, f(N))",
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("text", NESTED, ids=lambda t: t[:12])
def test_names_of_every_length(text: str) -> None:
    for length in range(1, MAX_NAME + 1):
        _formatted("group g\n\n" + re.sub(r"\bN\b", "n" * length, text) + "\n")


def test_what_is_nested_deep_has_room_too() -> None:
    made = _formatted(f"group g\n\nr: {'Neg(' * 50}x{')' * 50} ~> x\n")
    assert max(map(len, made.split("\n"))) <= WIDTH


# Generated rules.

_names = st.sampled_from(["x", "y", "abc", "n1"])
_ops = st.sampled_from(["Add", "Mul", "Neg", "Where"])
_types = st.recursive(
    st.sampled_from(["i32", "T", "int", "f32x4"]).map(S.TName),
    lambda t: st.one_of(
        t.map(S.TNot),
        st.tuples(t, t).map(S.TUnion),
        t.map(S.TPointer),
        st.just(S.TMaybeInvalid(S.TName("index"))),
        st.builds(S.TVector, t, st.sampled_from([3, "n"])),
    ),
    max_leaves=4,
)
_maybe_type = st.none() | _types
_literals = st.sampled_from(
    [(0, "0"), (-3, "-3"), (2.5, "2.5"), (-0.0, "-0.0"), (True, "true"), (float("nan"), "nan"), (10, "0xA")]
)
_leaves = st.one_of(
    st.builds(S.PVar, _names, _maybe_type),
    st.builds(S.PConst, st.sampled_from(["zero", "true"]), st.none(), _maybe_type),
    st.builds(S.PConst, st.just("const"), st.none() | _names, _maybe_type),
    _literals.map(lambda v: S.PLiteral(*v)),
)


def _composed(p: st.SearchStrategy[S.Pattern]) -> st.SearchStrategy[S.Pattern]:
    last = p | st.builds(S.PSequence, _names, _maybe_type) | st.lists(p, max_size=2).map(lambda i: S.PList(tuple(i)))
    args = st.tuples(st.lists(p, max_size=2), last).map(lambda a: (*a[0], a[1]))
    value = (
        st.none()
        | p
        | st.builds(S.PSome, p)
        | st.just(S.PNone())
        | st.lists(p, max_size=2).map(lambda i: S.PList(tuple(i)))
    )
    fields = st.lists(st.builds(S.PField, st.sampled_from(["src", "op", "f"]), value), max_size=3).map(tuple)
    return st.one_of(
        st.builds(S.POp, st.sampled_from([("Add",), ("Add", "Mul")]), args, st.booleans(), _maybe_type),
        st.builds(S.PBind, _names, p),
        st.builds(S.PStruct, _ops, fields, st.booleans()),
        st.lists(p, min_size=2, max_size=3).map(lambda o: S.PAlternatives(tuple(o))),
    )


_patterns = st.recursive(_leaves, _composed, max_leaves=6)
_binary = ["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "and", "or"]


def _expression(e: st.SearchStrategy[S.Expr]) -> st.SearchStrategy[S.Expr]:
    comprehension = st.builds(
        S.EComprehension,
        e,
        st.sampled_from([("i",), ("i", "j")]),
        e | st.builds(S.ERange, e, e, st.booleans()),
        st.none() | e,
    )
    item = e | e.map(S.ESpread)
    compare = st.integers(1, 2).flatmap(
        lambda n: st.builds(
            S.ECompare,
            st.tuples(*[st.sampled_from(["<", "<=", "==", "!="])] * n),
            st.tuples(*[e] * (n + 1)),
        )
    )
    return st.one_of(
        st.builds(S.EBinary, st.sampled_from(_binary), e, e),
        st.builds(S.EUnary, st.sampled_from(["not", "-", "~"]), e),
        compare,
        st.builds(S.ECall, _ops, st.lists(item | comprehension, max_size=2).map(tuple)),
        st.builds(S.EStruct, _ops, st.lists(st.tuples(_names, e), max_size=2).map(tuple)),
        st.builds(S.EIndex, e, e),
        st.lists(item, max_size=2).map(lambda i: S.EList(tuple(i))),
        comprehension,
    )


_expressions = st.recursive(
    _names.map(S.EName) | _literals.map(lambda v: S.ENumber(*v)) | st.just(S.ENone()), _expression, max_leaves=6
)
_clauses = st.lists(
    _expressions.map(S.If) | st.builds(S.Let, st.sampled_from([("a",), ("a", "b")]), _expressions), max_size=3
).map(tuple)
_docs = st.sampled_from(["", "doc", 'with "quotes" and \\', "long " * 60 + "end"])
_rules = st.builds(
    S.Rule,
    st.sampled_from(["r", "rule_2"]),
    _patterns,
    _clauses,
    _expressions,
    st.booleans(),
    st.sampled_from([(), ("nsz",), ("nsz", "nnan")]),
    _docs,
)


@pytest.mark.long
@given(_rules)
@settings(max_examples=400)
def test_generated_rules(rule: S.Rule) -> None:
    file = S.File("<text>", "morok", None, (), (S.Group("g", "", None, (rule,)),))
    text = format_file(file)
    parsed = parse_text(text)
    once = format_file(parsed)
    assert parse_text(once) == parsed
    assert once == text
    assert format_text(text) == text
    if "-" not in text:  # a minus in front of a number becomes part of it
        assert parsed == file


# Long rules: what is generated, with long names.

_raw_terms = st.recursive(
    st.sampled_from(["y: i32", "abc", "Const(0, i32)", "true", "[]", "f { y, abc }", 'g("(")']),
    lambda t: st.builds(
        "{}{}{}".format, _ops, st.just("("), st.lists(t, min_size=1, max_size=4).map(lambda a: ", ".join(a) + ")")
    ),
    max_leaves=8,
)
_params = st.lists(st.builds(S.Param, _names, _types), max_size=8).map(tuple)
_contracts = st.lists(_expressions, max_size=2).map(tuple)
_externs = st.builds(S.Extern, st.just("n1"), _params, _params, st.booleans(), _contracts, _contracts, _docs)
_many_ops = st.lists(_ops, min_size=1, max_size=9).map(tuple)
_long_rules = st.builds(
    lambda rule, examples, within: dataclasses.replace(rule, examples=tuple(examples), within=within),
    _rules,
    st.lists(st.builds(S.Example, _raw_terms, _raw_terms), max_size=2),
    st.sampled_from([None, 1.5]),
)
_templates = st.builds(
    S.Template, st.just("op"), st.just("binary"), _many_ops, st.lists(_long_rules, max_size=1).map(tuple)
)
_ends = st.lists(st.builds(S.Ends, _many_ops, st.sampled_from(["why", "long " * 60 + "end"])), max_size=1).map(tuple)
_files = st.builds(
    lambda extern, item, ends: S.File("<text>", "morok", None, (extern,), (S.Group("g", "", None, (item,), ends),)),
    _externs,
    _long_rules | _templates,
    _ends,
)
_SHORT = re.compile(r"\b(?:y|abc|n1|Add|Mul|Neg|Where|src|f)\b")


@pytest.mark.long
@given(_files, st.integers(1, 12))
@settings(max_examples=600)
def test_generated_files_with_long_names(file: S.File, times: int) -> None:
    short = format_file(parse_text(format_file(file)))
    text = _SHORT.sub(lambda m: m[0] * times, short)
    assert format_file(parse_text(text)) == _formatted(text)
