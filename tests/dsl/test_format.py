"""The canonical layout: it means the same, it is its own canonical layout, and no comment is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morok.dsl import syntax as S
from morok.dsl.check import check_text
from morok.dsl.format import WIDTH, format_file, format_rule, format_text
from morok.dsl.parse import parse_text
from morok.errors import RuleError

RULES = sorted((Path(__file__).parents[2] / "rules").glob("**/*.rules"))


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
    "comprehension": ("Vectorize(xs..)~>Vectorize([Neg(x) for (x) in xs])", "Vectorize(xs..) ~> Vectorize(Neg(x) for x in xs)"),
    "ranges": (
        "Vectorize(xs..) if all(i > 0 for i in 0 .. len(xs)) ~> xs[0]",
        "Vectorize(xs..) if all(i > 0 for i in 0..len(xs)) ~> xs[0]",
    ),
    "optional": ("Load{index,alt:Some(a)}~>Load{index,alt:a}", "Load { index, alt: Some(a) } ~> Load { index, alt: a }"),
}


@pytest.mark.parametrize("name", LAYOUT)
def test_rule_layout(name: str) -> None:
    text, expected = LAYOUT[name]
    assert format_text(f"group g\n\nr: {text}\n") == f"group g\n\nr: {(expected or text).replace('-(a)', '-a')}\n"


def test_long_rules_are_broken() -> None:
    text = "group g\n\nr: Vectorize(" + ", ".join(f"Gep(vector_number_{i}, [{i}])" for i in range(9)) + ") ~> vector_number_0\n"
    made = format_text(text)
    assert max(map(len, made.split("\n"))) <= WIDTH
    assert parse_text(made) == parse_text(text)
    assert made.split("\n")[2:4] == ["r: Vectorize(", "        Gep(vector_number_0, [0]),"]


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


def test_strings_and_comments_in_examples() -> None:
    text = 'group g\n\nr: Neg(Neg(x)) ~> x\n    example f("(", [  # why\n        1]) ~> x: i32\n'
    ((rule,),) = (g.items for g in parse_text(text).groups)
    assert isinstance(rule, S.Rule)
    assert rule.examples == (S.Example('f("(", [1])', "x: i32"),)
    assert format_text(text) == 'group g\n\nr: Neg(Neg(x)) ~> x\n    example f("(", [1]) ~> x: i32  # why\n'


def test_long_docs_are_broken() -> None:
    doc = " ".join(["many words"] * 40)
    made = format_text(f'group g\n\nr: Neg(Neg(x)) ~> x\n    "{doc}"\n')
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
    value = st.none() | p | st.builds(S.PSome, p) | st.just(S.PNone()) | st.lists(p, max_size=2).map(lambda i: S.PList(tuple(i)))
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
        S.EComprehension, e, st.sampled_from([("i",), ("i", "j")]), e | st.builds(S.ERange, e, e, st.booleans()), st.none() | e
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
