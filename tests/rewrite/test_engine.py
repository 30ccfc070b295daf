"""The engine: traversal, fixpoint, limits, positions, memory."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_text import rules

from morok.errors import RewriteLimitError
from morok.ir.dtype import dtypes
from morok.ir.interpret import run
from morok.ir.op import AxisType, Op
from morok.ir.uop import UOp, live
from morok.rewrite.engine import InitialSubstitution, Limits, Rebuild, graph_rewrite, rewrite_all
from morok.rewrite.ruleset import RuleSet
from morok.rewrite.trace import Trace

FOLD = """
add_zero: Add[x: !float, @zero] ~> x
mul_one: Mul[x, @one] ~> x
mul_zero: Mul[x: !float, @zero] ~> zero(x)
for op in binary [Add, Mul, Lt] {
    fold: op(@const(a), @const(b)) let v = eval(op, a, b) ~> v
        "constants"
}
where_true: Where(@true, t, _f) ~> t
where_false: Where(@false, _t, f) ~> f
"""


OUT = UOp.new(Op.DefineGlobal, (), 0, dtypes.i32.ptr(8))


def index(name: str = "x") -> UOp:
    return UOp.var(name, dtypes.index, 0, 10)


def test_a_cascade_settles_in_one_call():
    t, f = index("t"), index("f")
    assert graph_rewrite((UOp.const(3) < 5).where(t, f), rules(FOLD)) is t


def test_patterns_see_rewritten_operands():
    x = index()
    assert graph_rewrite((x + 0) * ((UOp.const(0) + 0) + 1), rules(FOLD)) is x


def test_what_is_known_stands_for_a_node_where_rules_fire_and_where_none_does():
    """Nor is it remembered for callers who know nothing of it."""
    r = UOp.range(10, 0)
    value, name = index("value"), UOp.range(10, 1)
    root = UOp.sink(UOp.new(Op.Noop, ((r + 0) * 1 + index(),)).end(r))
    given = InitialSubstitution({r: value}, {r: name}, lambda rebuild: rebuild)
    got = graph_rewrite(root, rules(FOLD), initial=given)
    assert got is UOp.sink(UOp.new(Op.Noop, (value + index(),)).end(name))
    assert graph_rewrite(root, rules(FOLD)) is UOp.sink(UOp.new(Op.Noop, (r + index(),)).end(r))


def test_who_knows_forms_may_rebuild_nodes_over_others():
    r, name, x = UOp.range(10, 0), UOp.range(10, 1), index()
    number = index("number")

    def rebuilding(rebuild: Rebuild) -> Rebuild:
        return lambda node, src: rebuild(node, (src[0], name) if node.op is Op.After else src)

    got = graph_rewrite((r * 1 + 0) * x.after(r), rules(FOLD), initial=InitialSubstitution({r: number}, {}, rebuilding))
    assert got is number * x.after(name)


@pytest.mark.parametrize("alive", [False, True])
def test_a_rebuilt_node_that_no_rule_changes_is_the_only_one_of_its_kind(alive: bool):
    """Rebuilt nodes are matched before they are made known: a rule whose target is the node again must see that it is."""
    x = index(f"kept_{alive}")
    there = [x.max(7)] if alive else []
    again = rules(FOLD + "again: Max(y: index, @const(c)) if vmin(y) == 0 let d = max(c, 7) ~> Max(y, d)")
    kept = graph_rewrite((x + 0).max(7), again)
    del there
    assert kept.serial
    assert kept is x.max(7)
    assert graph_rewrite((x + 0).max(5), again) is kept


def test_what_is_rewritten_at_once_is_never_made_known():
    x = index("never")
    graph = (x + 0) * (UOp.const(0) + 1)
    before = live()
    assert graph_rewrite(graph, rules(FOLD)) is x
    assert live() <= before + 1  # the constant 1 may be new; x * 1 is not


def test_bottom_up_sees_the_node_as_it_was():
    x = index()
    graph = UOp.new(Op.Neg, (UOp.new(Op.Abs, (x,)),))
    both = rules("outer: Neg(Abs(x: index)) ~> Mul(x, 7)\ninner: Abs(x: index) ~> x")
    assert graph_rewrite(graph, both) is UOp.new(Op.Neg, (x,))
    assert graph_rewrite(graph, both, bottom_up=True) is x * 7


def test_both_matchers_together():
    x = index()
    graph = UOp.new(Op.Neg, (UOp.new(Op.Abs, (x,)),))
    before = rules("outer: Neg(Abs(x: index)) ~> Abs(Mul(x, 7))")
    after = rules("inner: Abs(x: index) ~> x")
    assert graph_rewrite(graph, after, before=before) is x * 7
    with pytest.raises(ValueError, match="bottom_up"):
        graph_rewrite(graph, after, before=before, bottom_up=True)


def test_a_rebuilt_node_is_seen_again_bottom_up():
    x = index()
    both = rules("inner: Abs(x: index) ~> x\nouter: Neg(Mul[x: index, 7]) ~> x")
    assert graph_rewrite(UOp.new(Op.Neg, (UOp.new(Op.Abs, (x * 7,)),)), both, bottom_up=True) is x


def test_several_roots_share_one_rewriting():
    x = index()
    trace = Trace()
    shared = x + 0
    a, b = rewrite_all((shared * 3, shared * 4), rules(FOLD), trace=trace)
    assert (a, b) == (x * 3, x * 4)
    assert len(trace.firings) == 1


def test_a_diamond_costs_a_step_a_level():
    node = index()
    for _ in range(20):
        node = UOp.new(Op.Max, (node + 0, node + 0))
    trace = Trace()
    graph_rewrite(node, rules(FOLD), trace=trace)
    assert len(trace.firings) == 20


@pytest.mark.long
def test_a_chain_of_100_000_nodes():
    x = node = index("deep")
    for _ in range(50_000):
        node = UOp.new(Op.Neg, (node + 0,))
    out = graph_rewrite(node, rules(FOLD))
    depth = 0
    while out is not x:
        assert out.op is Op.Neg
        out = out.src[0]
        depth += 1
    assert depth == 50_000


@pytest.mark.long
def test_a_chain_that_collapses():
    node = UOp.const(0)
    for _ in range(100_000):
        node = UOp.new(Op.Add, (node, UOp.const(1)))
    assert graph_rewrite(node, rules(FOLD)) is UOp.const(100_000)


def test_oscillation_names_the_rule_twice():
    with pytest.raises(RewriteLimitError) as caught:
        graph_rewrite(index() + index("y"), rules("a: Add(x: index, y) ~> Add(y, x)"))
    assert str(caught.value).count("t.a") == 2
    assert "Add(x, y)" in str(caught.value)


def test_two_rules_with_opposite_forms_are_both_named():
    pair = rules("there: Add(x: index, x) ~> Mul(x, 2)\nback: Mul(x: index, 2) ~> Add(x, x)")
    with pytest.raises(RewriteLimitError, match=r"t\.there then t\.back|t\.back then t\.there"):
        graph_rewrite(index() + index(), pair)


def test_a_node_that_needs_its_own_result():
    with pytest.raises(RewriteLimitError, match=r"t\.grow"):
        graph_rewrite(UOp.new(Op.Neg, (index(),)), rules("grow: Neg(x: index) ~> Mul(Neg(x), 1)"))


def test_growth_meets_the_limit_of_a_node():
    with pytest.raises(RewriteLimitError, match=r"1,001 times.*t\.grow"):
        graph_rewrite(index() + 1, rules("grow: Add(x: index, c @const) ~> Add(Neg(x), c)"))


def test_growth_meets_the_limit_in_all():
    grow = rules("grow: Neg(x: index) ~> Abs(Neg(Mul(x, 3)))")
    with pytest.raises(RewriteLimitError, match=r"of a graph of 2 nodes have not reached a fixpoint.*t\.grow"):
        graph_rewrite(UOp.new(Op.Neg, (index(),)), grow, limits=Limits(total=500, per_size=10))


def test_the_limit_in_all_grows_with_the_graph():
    node = index()
    for _ in range(300):
        node = UOp.new(Op.Neg, (node + 0,))
    assert graph_rewrite(node, rules(FOLD), limits=Limits(total=10, per_size=1)).toposort()


def test_honest_work_within_the_limit_of_a_node():
    """A counter that runs down 900 times at one node."""
    down = rules("down: Add(x: index, @const(c)) if c > 0 ~> Add(x, c - 1)")
    assert graph_rewrite(index() + 900, down) is index() + 0


def test_binders_are_kept_and_what_is_below_them_rewritten():
    end = UOp.var("n", dtypes.index, 1, 8) + 0
    r = UOp.range(end, 0, AxisType.Reduce)
    reduce = (r * 2).reduce(Op.Add, r)
    drop = rules(FOLD + "\nr: Range { end: e, .. } ~> e")
    out = graph_rewrite(reduce, drop)
    inside = UOp.range(UOp.var("n", dtypes.index, 1, 8), 0, AxisType.Reduce)
    assert out.src[1] is inside
    assert out.src[0] is end.src[0] * 2
    everywhere = frozenset({"value", "place", "order", "binder"})
    assert len(graph_rewrite(reduce, drop, positions=everywhere).src) == 1, "what no loop is left in closes none"


def test_what_a_rule_puts_in_the_place_of_a_binder_names_loops():
    """The caller who fires on binders must know what closes them; an expression stands for the loops in it."""
    r, outer, inner = UOp.range(8, 0), UOp.range(4, 1), UOp.range(2, 2)
    out = OUT.index(r).store(r.cast(dtypes.i32)).end(r)
    split = rules(
        "split: Range { end: @const(n): index, axis, renumbered, .. } if n == 8"
        " ~> Add(Mul(Range { end: 4, id: 1, axis, renumbered }, 2), Range { end: 2, id: 2, axis, renumbered })"
    )
    everywhere = frozenset({"value", "place", "order", "binder"})
    value = outer * 2 + inner
    assert graph_rewrite(out, split, positions=everywhere) is OUT.index(value).store(value.cast(dtypes.i32)).end(
        outer, inner
    )


def test_no_rule_of_values_changes_which_loops_are_closed():
    """An axis is the same one after its range became lanes, where rules fire and where none does."""
    r = UOp.range(4, 0, AxisType.Upcast)
    third = UOp.new(Op.Contract, (r.cast(dtypes.i32),), ((0, 4),)).gep(3)
    program = UOp.sink(OUT.index(r).store(third).end(r))
    lanes = rules(
        "lanes: Range { end: @const(n): index, id, axis: Upcast, .. } ~> Unroll { src: VConst(k for k in 0..n), axes: [[id, n]] }"
    )
    alike = rules("alike: Contract { src: x: i32, axes: a } if free_of_axes(x, a) ~> Gep(x, [0 for _k in 0..width(a)])")
    everywhere = frozenset({"value", "place", "order", "binder"})
    for made in (
        program,
        graph_rewrite(program, alike),
        graph_rewrite(program, lanes),
        graph_rewrite(program, lanes, positions=everywhere),
    ):
        stored = [0] * 8
        run(made, {0: stored})
        assert stored == [3, 3, 3, 3, 0, 0, 0, 0]


def test_places_can_be_held_too():
    buffer = UOp.new(Op.DefineGlobal, (), 0, dtypes.f32.ptr(16))
    place = buffer.index(UOp.const(3) + 1)
    store = place.store(buffer.index(UOp.const(1) + 1))
    loads = rules("load: n @ Index { .. } ~> Load(n)\n" + FOLD)
    out = graph_rewrite(store, loads, positions=frozenset({"value", "order"}))
    assert out.src[0] is buffer.index(UOp.const(4))
    assert out.src[1] is buffer.index(UOp.const(2)).load()


def test_results_are_remembered_across_calls():
    group = rules(FOLD)
    graph = index("memo") * 1 + 0
    done = graph_rewrite(graph, group)
    calls = []
    matcher = group.matcher
    watched = {k: (lambda n, c, f=f: calls.append(n) or f(n, c)) for k, f in matcher.table.items()}
    group._matchers = {k: m._replace(table=watched) for k, m in group._matchers.items()}
    assert graph_rewrite(graph, group) is done
    assert calls == []


def test_matchers_in_turn_are_one():
    first = rules("neg: Neg(Neg(x: !float)) ~> x\nzero: Add[x: !float, @zero] ~> x")
    second = rules("same: Add(x: !float, x) ~> Mul(x, 2)\nany: x @ Neg(_y: index) ~> Mul(x, 1)\nbare: x: f32 ~> Abs(x)")
    whole = first + second
    chain = RuleSet(whole.parts, (first, second))
    x, f = index(), UOp.var("f", dtypes.f32)
    assert chain.names == whole.names
    nodes = (x + 0, x + x, -x, UOp.new(Op.Neg, (-x,)), (x + 0) + (x + 0), x * 1, f, f + f, f * f)
    hits = [chain.rewrite_node(node) for node in nodes]
    assert hits == [whole.rewrite_node(node) for node in nodes]
    assert {hit[1] for hit in hits if hit is not None} == set(whole.names)


@pytest.mark.long
def test_memory_makes_no_cycles():
    gc.collect()
    gc.disable()
    try:
        from morok.ir.uop import live

        group = rules(FOLD)
        graph_rewrite(index("warm") * 1, group)
        before = live()
        for i in range(50):
            graph_rewrite(UOp.new(Op.Max, (UOp.var(f"m{i}") * 1 + 0, UOp.var(f"m{i}"))), group)
        assert live() <= before + 2
    finally:
        gc.enable()


def test_context_reaches_helpers_and_is_not_remembered():
    group = rules(
        "number: Neg(x: index) let k = next_number() => Mul(x, k)",
        head='helpers "rewrite_helpers"\nextern next_number() -> (k: const)?',
    )
    assert not group.has_context
    x = index("ctx")
    from morok.dsl.check import check_text

    text = (
        'helpers "rewrite_helpers"\nextern count_up() -> (k: const)?\n\n'
        'group c "counts"\n@context Counter;\n\nnumber: Neg(x: index) let k = count_up() => Mul(x, k)\n    "a counter"\n'
    )
    from morok.rewrite.ruleset import RuleSet

    counted = RuleSet.of([r for g in check_text(text).groups for r in g.rules], unproved=True)
    assert counted.has_context
    context = [5]
    assert graph_rewrite(UOp.new(Op.Neg, (x,)), counted, context=context) is x * 6
    assert graph_rewrite(UOp.new(Op.Neg, (x,)), counted, context=context) is x * 7
    mixed = counted + rules(FOLD)
    assert graph_rewrite(UOp.new(Op.Neg, (x + 0,)), mixed, context=context) is x * 8


def test_provenance_names_rule_and_stage():
    from morok.ir.provenance import describe

    x = index("prov")
    out = graph_rewrite(UOp.new(Op.Abs, (x * 9 + 0,)), rules(FOLD + "\nabs: Abs(x: index) ~> Max(x, 77)"), stage="4")
    assert out.op is Op.Max
    assert "stage 4 rule `t.abs`" in describe(out.origin)


def test_provenance_of_a_node_that_was_there():
    from morok.ir.provenance import describe

    x = index("kept")
    assert graph_rewrite(x + 0, rules(FOLD)) is x
    assert describe(x.origin)[0].endswith("`x + 0`")
    assert describe(x.origin)[1:] == ["rule `t.add_zero`"]


def test_a_single_firing_leaves_no_trace_in_what_is_built_later():
    from morok.ir.provenance import describe

    x = index("single")
    assert rules("abs: Abs(x: index) ~> Max(x, 78)").rewrite_node(UOp.new(Op.Abs, (x,))) is not None
    later = x * 12345
    assert describe(later.origin)[-1].endswith("`x * 12345`")


def test_trace_records_before_after_and_stage():
    trace = Trace()
    graph_rewrite(index("traced") + 0, rules(FOLD), trace=trace, stage="s")
    (f,) = trace.firings
    assert (f.stage, f.rule, f.before, f.after) == ("s", "t.add_zero", "Add(traced, 0)", "traced")
    assert f.seconds >= 0
    assert f.row()["rule"] == "t.add_zero"


@pytest.mark.long
def test_trace_by_setting(tmp_path):
    import json
    import subprocess
    import sys

    out = tmp_path / "out.json"
    code = (
        "import morok; from morok import UOp, dtypes\n"
        "from rule_text import rules\n"
        "from morok.rewrite.engine import graph_rewrite\n"
        "graph_rewrite(UOp.var('x', dtypes.index) + 0, rules('z: Add[x: !float, @zero] ~> x'))\n"
    )
    import os
    from pathlib import Path

    root = Path(__file__).resolve().parents[2]
    env = {**os.environ, "MOROK_TRACE": str(out), "PYTHONPATH": f"{root}{os.pathsep}{Path(__file__).parent}"}
    subprocess.run([sys.executable, "-c", code], check=True, env=env, cwd=tmp_path)
    assert [f["rule"] for f in json.loads(out.read_text())["firings"]] == ["t.z"]


def expression(depth: int) -> st.SearchStrategy[UOp]:
    leaves = st.one_of(
        st.sampled_from([UOp.var(n, dtypes.index, 0, 7) for n in "abc"]),
        st.integers(-2, 3).map(lambda v: UOp.const(v, dtypes.index)),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
            st.tuples(inner, inner).map(lambda p: p[0] * p[1]),
            st.tuples(inner, inner, inner, inner).map(lambda p: (p[0] < p[1]).where(p[2], p[3])),
        ),
        max_leaves=2**depth,
    )


@settings(max_examples=100)
@given(expression(4))
def test_rewriting_is_idempotent(e):
    group = rules_once()
    out = graph_rewrite(e, group)
    assert graph_rewrite(out, group, trace=Trace()) is out


_cached: list = []


def rules_once():
    if not _cached:
        _cached.append(rules(FOLD))
    return _cached[0]


def test_eight_threads_rewrite_the_same_graphs():
    group = rules(FOLD)
    barrier = threading.Barrier(8)

    def work(seed: int) -> list[UOp]:
        barrier.wait()
        out = []
        for i in range(60):
            x = UOp.var(f"thread{i % 7}", dtypes.index, 0, 5)
            out.append(graph_rewrite(((x + 0) * 1 + i) * ((UOp.const(i) < 30).where(x, x + 1)), group))
        return out

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    for other in results[1:]:
        assert all(a is b for a, b in zip(results[0], other, strict=True))


def test_what_a_rule_makes_of_a_node_with_held_operands_is_finished_too() -> None:
    """Ranges are held: the node waits for its operands, and what replaces it has operands that nobody has seen."""
    made = rules(
        "sum: Reduce { src: x: index, ranges: [Range(_e)], op: Add } ~> Add(Mul(x, 7), Mul(x, 5))\nless: Mul(x: index, 7) ~> x"
    )
    x = UOp.var("x", dtypes.index, 0, 3)
    root = (x // 2).reduce(Op.Add, UOp.range(4, 0))
    assert graph_rewrite(root, made) is x // 2 + (x // 2) * 5
