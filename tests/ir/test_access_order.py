"""Order between accesses of one place: storage says it, values and what loops wait for do not."""

from __future__ import annotations

import pytest

import morok
from morok.errors import UndefinedError
from morok.ir.dtype import dtypes
from morok.ir.interpret import evaluate, run
from morok.ir.op import Op
from morok.ir.uop import UOp, vconst
from morok.rewrite import library

i32, index = dtypes.i32, dtypes.index
START = [10, 20, 30, 40]
A, OUT = (UOp.new(Op.DefineGlobal, (), slot, i32.ptr(4)) for slot in range(2))
ZERO, TRUE = UOp.const(0, index), UOp.const(True, dtypes.bool)
R = A.index(0).load()
SEVEN = A.index(0).store(UOp.const(7, i32))
MORE = A.index(0).store(R + 1)
READ = OUT.index(0).store(R)
THREE, ALL = UOp.range(3, 0), UOp.range(4, 1)


def lanes(*numbers: int) -> UOp:
    """Places of A, as one."""
    return A.index(vconst(index, numbers))


def group(*statements: UOp) -> UOp:
    return UOp.new(Op.Group, statements)


DOUBLED = UOp.vectorize(R, A.index(1).load()) * UOp.const(2, i32.vec(2))
PAIR, IN_PLACE = lanes(0, 1), lanes(0, 1).load() * UOp.const(2, i32.vec(2))
AXIS = UOp.new(Op.Unroll, (vconst(index, (0, 1, 2, 3)),), ((0, 4),))
ALONG = A.index(AXIS)
FIRST = A.index(0, gate=ALL.eq(0))
BEHIND = UOp.new(Op.Range, (UOp.const(1, index), SEVEN), THREE.arg)

ONE = UOp.const(1, i32)
SAME = (Op.Detach, Op.Contiguous, Op.Noop)
BEHIND_SEVEN = A.after(SEVEN)
NO_STORES = {
    "gated off": BEHIND_SEVEN.index(0, gate=UOp.const(False, dtypes.bool)).store(ONE),
    "at no place": BEHIND_SEVEN.index(UOp.invalid_at()).store(ONE),
    "in a loop without iterations": BEHIND_SEVEN.index(0).store(ONE).end(UOp.range(0, 5)),
    "by no iteration": UOp.new(Op.Store, (BEHIND_SEVEN.index(0), ONE, UOp.range(0, 5))),
    "in a group": group(BEHIND_SEVEN.index(UOp.invalid_at()).store(ONE), group()),
}
CLEARED = A.after(A.index(THREE).store(UOp.const(0, i32)).end(THREE)).index(0)

JOINS = (Op.PtrCat, Op.Vectorize, Op.Cat)
WAITING_SECOND = {op.name: UOp.new(op, (A.index(0), BEHIND_SEVEN.index(1))) for op in JOINS}
WAITING_FIRST = {op.name: UOp.new(op, (BEHIND_SEVEN.index(0), A.index(1))) for op in JOINS}
PLACES_OF_AXIS = {op.name: UOp.new(op, (A.index(0), BEHIND_SEVEN.index(1), A.index(2), A.index(3))) for op in JOINS}

UNORDERED = {
    **{
        f"a lane of {name}, of which another waits": OUT.index(0).store(UOp.new(Op.Load, (p,), None, i32.vec(2)).gep(0))
        for name, p in WAITING_SECOND.items()
    },
    **{
        f"a place of {name}, of which another waits": OUT.index(0).store(p.gep(0).load())
        for name, p in WAITING_SECOND.items()
    },
    **{
        f"a store to {name}, of which another waits": p.store(vconst(i32, (1, 2))) for name, p in WAITING_SECOND.items()
    },
    **{
        f"an iteration of {name}, of which another waits": OUT.index(AXIS).store(
            UOp.new(Op.Unroll, (p,), AXIS.arg).load()
        )
        for name, p in PLACES_OF_AXIS.items()
    },
    **{
        f"behind a store {n}": UOp.sink(SEVEN, OUT.index(0).store(A.after(s).index(0).load()))
        for n, s in NO_STORES.items()
    },
    "iterations that wait for those of another loop over the range": CLEARED.store(
        CLEARED.load() + THREE.cast(i32)
    ).end(THREE),
    "a load whose index waits": OUT.index(0).store(A.index(ZERO.after(SEVEN)).load()),
    "a load whose index waits, times nothing": OUT.index(0).store(A.index(ZERO.after(SEVEN) * 0).load()),
    "a load whose gate waits": OUT.index(0).store(
        UOp.new(Op.Load, (A.index(0, gate=TRUE.after(SEVEN)), UOp.const(0, i32)))
    ),
    "a load whose alternative waits": OUT.index(0).store(
        UOp.new(Op.Load, (A.index(0, gate=TRUE), UOp.const(0, i32).after(SEVEN)))
    ),
    "a store whose value waits for another": A.index(0).store(OUT.index(0).load().after(SEVEN)),
    "a load in a loop that waits": UOp.sink(SEVEN, OUT.index(BEHIND).store(A.index(BEHIND).load()).end(BEHIND)),
    "a read that others use": UOp.sink(MORE, READ),
    "a read that others use, whose result is stored over": UOp.sink(OUT.after(group(MORE, READ)).index(0).store(ONE)),
    "a read after the store, whose result is stored over": OUT.after(
        group(SEVEN, OUT.index(0).store(A.index(ZERO.after(SEVEN)).load()))
    )
    .index(0)
    .store(ONE),
    "a read that others use, times nothing here": UOp.sink(A.index(0).store(R * 0), OUT.index(1).store(R + 5)),
    "a read used behind the store over it": OUT.after(MORE).index(0).store(R),
    "a read that a second iteration uses": A.index(0, gate=ALL < 2).store(R + 1).end(ALL),
    "a read that earlier iterations use": A.index(THREE).store(A.index(2).load()).end(THREE),
    "a length stored over": A.index(0).store(R + 1).end(UOp.range(R.cast(index), 5)),
    "a read folded in an iteration before": A.index(ALL).store(A.index(THREE).load().reduce(Op.Add, THREE)).end(ALL),
    "lanes exchanged and marked": PAIR.store(UOp.new(Op.Detach, (lanes(1, 0).load(),))),
    "lanes exchanged": lanes(0, 1).store(lanes(1, 0).load()),
    "a lane for all": lanes(0, 1).store(UOp.vectorize(R, R)),
    "lanes moved by one": lanes(0, 1).store(lanes(1, 2).load()),
    "iterations moved by one": A.index(THREE).store(A.index(THREE + 1).load()).end(THREE),
    "a read before the loop of stores": A.index(THREE).store(R).end(THREE),
}

ORDERED = {
    **{
        f"lanes of {name}": (OUT.index(vconst(index, (0, 1))).store(UOp.new(Op.Load, (p,), None, i32.vec(2))), [7], [7, 20])
        for name, p in WAITING_FIRST.items()
    },
    **{f"a lane of {name} that waits": (OUT.index(0).store(p.gep(0).load()), [7], [7]) for name, p in WAITING_FIRST.items()},
    **{f"a store to {name}": (p.store(vconst(i32, (1, 2))), [1, 2], [0]) for name, p in WAITING_FIRST.items()},
    "a load whose storage waits": (OUT.index(0).store(A.after(SEVEN).index(0).load()), [7], [7]),
    "a load whose storage waits for more": (OUT.index(0).store(A.after(group(SEVEN, group())).index(0).load()), [7], [7]),
    "one store behind another": (OUT.index(0).store(A.after(A.after(MORE).index(0).store(R.like(7))).index(0).load()), [7], [7]),
    "a store that waits for who uses the read": (A.after(READ).index(0).store(R + 1), [11], [10]),
    "a read for one store alone": (MORE, [11], [0]),
    "a store that waits for the loop of the reads": (
        A.after(OUT.index(ALL).store(A.index(ALL).load()).end(ALL)).index(0).store(R + A.index(1).load()), [30], START,
    ),
    "lanes of their own": (lanes(0, 1).store(lanes(0, 1).load() + lanes(0, 1).load()), [20, 40], [0]),
    **{f"lanes under {op.name}": (PAIR.store(UOp.new(op, (IN_PLACE,))), [20, 40], [0]) for op in SAME},
    "lanes taken apart": (PAIR.store(UOp.new(Op.Detach, (UOp.vectorize(R, A.index(1).load()),)).gep(0, 1)), START, [0]),
    "lanes folded on their own": (PAIR.store(IN_PLACE.reduce(Op.Add, THREE)), [60, 120], [0]),
    "lanes of an axis": (ALONG.store(UOp.new(Op.Unroll, (A.index(AXIS.src[0]).load(),), AXIS.arg) + 1), [11, 21, 31, 41], [0]),
    "lanes from an axis": (lanes(0, 1, 2, 3).store(UOp.new(Op.Contract, (ALONG.load() + 1,), AXIS.arg)), [11, 21, 31, 41], [0]),
    "a read for the one iteration that stores": (FIRST.store(R + 1).end(ALL), [11], [0]),
    "a read in each iteration for the one that stores": (FIRST.store(A.index(ALL * 0).load() + 1).end(ALL), [11], [0]),
    "a read for a choice not taken": (
        group(MORE, OUT.index(0).store(UOp.const(True, dtypes.bool).where(ONE, R))), [11], [1],
    ),
    "lanes computed together": (group(A.index(0).store(DOUBLED.gep(0)), A.index(1).store(DOUBLED.gep(1))), [20, 40], [0]),
    "iterations of their own": (A.index(ALL).store(A.index(ALL).load() + 1).end(ALL), [11, 21, 31, 41], [0]),
    "a store of a fold": (
        OUT.index(0).store(A.after(A.index(THREE).store(R.like(7))).index(THREE).load().reduce(Op.Add, THREE)),
        [7, 7, 7, 40],
        [21],
    ),
    "iterations that wait": (A.after(THREE).index(0).store(A.after(THREE).index(0).load() + 1).end(THREE), [13], [0]),
}  # fmt: skip


def ran(graph: UOp) -> tuple[list[int], list[int]]:
    """The contents of both buffers after a graph has run."""
    held = {0: list(START), 1: [0] * 4}
    run(graph, held)
    return held[0], held[1]


@pytest.mark.parametrize("name", UNORDERED)
def test_values_say_nothing_of_order(name: str) -> None:
    with pytest.raises(UndefinedError, match="in no order"):
        ran(UNORDERED[name])


def test_a_statement_of_a_fold_stores_nowhere_where_it_has_read() -> None:
    """Another fold of the same would read what the first one has stored."""
    place = A.index(THREE)
    folded = A.after(place.store(place.load() + 1)).index(THREE).load().reduce(Op.Add, THREE)
    with pytest.raises(UndefinedError, match="is stored to by a fold that has used it"):
        ran(OUT.index(0).store(folded))


@pytest.mark.parametrize("name", ORDERED)
def test_storage_and_a_value_of_ones_own_say_it(name: str) -> None:
    graph, a, out = ORDERED[name]
    held = ran(graph)
    assert held[0][: len(a)] == a
    assert held[1][: len(out)] == out


def test_what_is_evaluated_is_behind_no_store() -> None:
    again = A.after(MORE).index(0).load()
    assert evaluate(again, {}, {0: list(START)}) == 11
    with pytest.raises(UndefinedError, match="in no order"):
        evaluate(again - R, {}, {0: list(START)})


@pytest.mark.parametrize("name", ORDERED)
def test_what_has_a_value_keeps_it_under_the_rules(name: str) -> None:
    """No rule drops what orders: not an operand of a value, nor a lane of a store."""
    graph = UOp.sink(ORDERED[name][0])
    wanted = ran(graph)
    assert ran(morok.simplify(graph)) == wanted
    made = morok.rewrite(graph, library.groups("gep_pushing", "move_where_on_load", "fold_invalid_load_store"))
    assert ran(made) == wanted
