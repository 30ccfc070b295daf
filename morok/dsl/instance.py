"""A check of one firing: are the lanes of the match and of its replacement the same terms?

In a firing all sizes and static fields are numbers. The lanes of its operands are unknowns; both sides are evaluated
symbolically, lane by lane and at every iteration of their axes, and their terms compared by identity. This takes no solver, and
works at any size; but it evaluates only ops that work lane by lane, and ops that declare in which role they rearrange lanes
(morok.dialect.OpInfo). Any other node is an unknown, equal to itself alone: the check has no model of memory and launches.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final

from morok import lane_roles
from morok.dialect import NOT_CONST, Dialect, Node, OpInfo
from morok.dsl.lane_count import lane_count
from morok.value_domains import index_at, row_major

MOST_NODES: Final = 2000  # of both sides together, down to the operands
MOST_TERMS: Final = 1 << 16
MOST_ITERATIONS: Final = 4096
MOST_REMEMBERED: Final = 4096

Term = int
Iteration = tuple[int, ...]  # an index for each axis


class Unjudged(Exception):
    """A firing that the terms of lanes do not show right."""


def exact(value: Any) -> tuple[type, str]:
    """The key of a static value: it distinguishes 1 from True and 0.0 from -0.0, in sequences too."""
    return value.__class__, repr(value)


class Instance:
    """The two sides of a firing, with the terms of their lanes.

    leaves  the nodes that are unknowns, by identity
    axes    the length of each axis, in the order of an iteration's indices
    folded  the names of the ops of folds: on integers their order is free
    """

    def __init__(self, dialect: Dialect, leaves: Iterable[Node], root: Node, result: Node) -> None:
        self.dialect = dialect
        self.by_key = {info.key: info for info in dialect.ops.values()}
        self.invalid = next(
            (i.key for i in dialect.ops.values() if i.name == dialect.inline.get("invalid_op")), NOT_CONST
        )
        self.lanes_of = lane_count(dialect)
        self.known: dict[tuple[int, Iteration], tuple[Term, ...]] = {}
        self.entries: list[tuple[Any, ...]] = []
        self.terms: dict[tuple[Any, ...], Term] = {}
        self.axes: dict[int, int] = {}
        self.folded: set[str] = set()
        self.leaves = {id(n): n for n in map(self.inside, leaves)}
        self.nodes = self.collected(root, result)
        self.places = {axis: k for k, axis in enumerate(self.axes)}
        self.root, self.result = root, result

    # nodes

    def inside(self, leaf: Node) -> Node:
        """The operand below a leaf's ops of role "open", since patterns match inside them; any other leaf itself."""
        info = self.by_key.get(self.dialect.opkey(leaf))
        while info is not None and info.role == "open":
            leaf = self.dialect.operands(leaf)[0]
            info = self.by_key.get(self.dialect.opkey(leaf))
        return leaf

    def info(self, node: Node) -> OpInfo | None:
        """The op of a node whose lanes are evaluated; None for a constant or an unknown."""
        if self.dialect.const_value(node) is not NOT_CONST:
            return None
        info = self.by_key.get(self.dialect.opkey(node))
        return info if info is not None and id(node) not in self.leaves and (info.params or info.role) else None

    def field(self, node: Node, info: OpInfo) -> Any:
        if not info.fields:
            raise Unjudged("a role without a field")
        return self.dialect.attr(node, info.fields[0])

    def collected(self, *roots: Node) -> dict[int, Node]:
        """All nodes down to the unknowns, operands first. Adds their axes and folds to `axes` and `folded`."""
        found: dict[int, Node] = {}
        stack: list[tuple[Node, bool]] = [(r, False) for r in reversed(roots)]
        while stack:
            node, done = stack.pop()
            if done:
                found[id(node)] = node
                continue
            if id(node) in found:
                continue
            if len(found) + len(stack) > MOST_NODES:
                raise Unjudged("more nodes than are looked at")
            stack.append((node, True))
            info = self.info(node)
            if info is None:
                continue
            if info.role in ("open", "close"):
                self.learn_axes(self.field(node, info))
            if info.role == "fold":
                self.folded.add(self.op_of(node, info))
                for r in self.dialect.operands(node)[1:]:
                    opened = self.by_key.get(self.dialect.opkey(r))
                    if opened is not None and opened.role == "open":
                        self.learn_axes(self.field(r, opened))
            stack += [(o, False) for o in reversed(self.dialect.operands(node))]
        return found

    def learn_axes(self, axes: Any) -> None:
        for axis, length in axes:
            if self.axes.setdefault(axis, length) != length:
                raise Unjudged("one axis of two lengths")
        if math.prod(self.axes.values()) > MOST_ITERATIONS:
            raise Unjudged("more iterations than are looked at")

    def op_of(self, node: Node, info: OpInfo) -> str:
        """The op of a fold, by its name."""
        found = self.by_key.get(self.field(node, info))
        if found is None:
            raise Unjudged("a fold by no op")
        return found.name

    def scalar(self, node: Node) -> Any:
        d = self.dialect.type(node)
        return getattr(self.dialect, "element", lambda x: x)(d)

    def is_integer(self, d: Any) -> bool:
        names = self.dialect.classes.get("int", frozenset())
        return any(self.dialect.dtypes[n] == d for n in names if n in self.dialect.dtypes)

    # terms

    def term(self, *entry: Any) -> Term:
        found = self.terms.get(entry)
        if found is None:
            if len(self.entries) >= MOST_TERMS:
                raise Unjudged("more terms than are looked at")
            found = self.terms[entry] = len(self.entries)
            self.entries.append(entry)
        return found

    def constant(self, d: Any, value: Any) -> Term:
        return self.term("constant", d, *exact(value), value if isinstance(value, int) else None)

    def iterations(self, axes: Iterable[int], at: Iteration) -> list[Iteration]:
        """Copies of `at`, one for each combination of indices of these axes."""
        chosen = [(self.places[a], self.axes[a]) for a in axes]
        out = []
        for values in itertools.product(*(range(n) for _, n in chosen)):
            there = list(at)
            for (place, _), v in zip(chosen, values, strict=True):
                there[place] = v
            out.append(tuple(there))
        return out

    def block(self, axes: Sequence[tuple[int, int]], at: Iteration) -> int:
        """The number of an iteration's block of lanes; the last axis runs fastest."""
        return row_major(0, [at[self.places[axis]] for axis, _ in axes], [length for _, length in axes])

    def of_block(self, axes: Sequence[tuple[int, int]], block: int, at: Iteration) -> Iteration:
        out = list(at)
        for (axis, _), i in zip(axes, index_at(block, [length for _, length in axes], divmod), strict=True):
            out[self.places[axis]] = i
        return tuple(out)

    def lanes(self, node: Node, at: Iteration) -> tuple[Term, ...]:
        """The terms of a node at an iteration. Without axes, `finding` computes operands first: deep graphs do not recurse."""
        found = self.known.get((id(node), at))
        if found is None:
            found = self.known[id(node), at] = self.computed(node, at)
        return found

    def computed(self, node: Node, at: Iteration) -> tuple[Term, ...]:
        value = self.dialect.const_value(node)
        count = self.lanes_of(node)
        if value is not NOT_CONST:
            return (self.constant(self.scalar(node), value),) * count
        if self.dialect.opkey(node) == self.invalid:
            return (self.term("invalid", self.scalar(node)),) * count
        info = self.info(node)
        if info is None:
            return self.unknowns(node, count, at)
        made: dict[str, Callable[[Node, OpInfo, Iteration], tuple[Term, ...]]] = {
            "take": self.take,
            "join": self.join,
            "constants": self.constants,
            "fold": self.fold,
            "open": self.open,
            "close": self.close,
        }
        found = made[info.role](node, info, at) if info.role else self.lanewise(node, info, at)
        if len(found) != count:
            raise Unjudged(f"{len(found)} lanes of {info.name}, which has {count}")
        return found

    def unknowns(self, node: Node, count: int, at: Iteration) -> tuple[Term, ...]:
        """A node's lanes as unknowns, different at every iteration of the axes that the node depends on."""
        free = self.dialect.facts.get("free_of_axes")
        pairs = zip(self.axes.items(), at, strict=True)
        here = tuple([k for axis, k in pairs if free is None or not free(node, (axis,))])
        return tuple([self.term("unknown", id(node), lane, here) for lane in range(count)])

    def lanewise(self, node: Node, info: OpInfo, at: Iteration) -> tuple[Term, ...]:
        d, count = self.scalar(node), self.lanes_of(node)
        given = [self.lanes(o, at) for o in self.dialect.operands(node)]
        if any(len(g) not in (1, count) for g in given):
            raise Unjudged(f"{info.name} of other lanes")
        attrs = tuple([exact(self.dialect.attr(node, f)) for f in info.fields])
        out = []
        for k in range(count):
            arguments = [lane_roles.lane(g, k) for g in given]
            out.append(self.applied(info, d, attrs, arguments))
        return tuple(out)

    def applied(self, info: OpInfo, d: Any, attrs: tuple[Hashable, ...], arguments: list[Term]) -> Term:
        """The term of an op on one lane: of integer constants a constant; of a fold's op on integers a multiset of operands."""
        same = info.result in info.domains and all(p == info.result for p in info.params)
        whole = same and self.is_integer(d)
        if (
            whole
            and info.evaluate is not None
            and not attrs
            and all(self.entries[a][0] == "constant" for a in arguments)
        ):
            try:
                return self.constant(d, info.evaluate(d, *[self.entries[a][4] for a in arguments]))
            except Exception:  # the op has no value here: it stays a term
                return self.term("op", info.name, d, attrs, *arguments)
        if whole and info.commutative and info.name in self.folded:
            return self.bag(info.name, d, arguments)
        return self.term("op", info.name, d, attrs, *(sorted(arguments) if info.commutative else arguments))

    def bag(self, op: str, d: Any, items: Sequence[Term]) -> Term:
        """The term of an associative and commutative op on integers over a multiset of terms."""
        flat: list[Term] = []
        for i in items:
            entry = self.entries[i]
            flat += entry[3:] if entry[:3] == ("bag", op, d) else [i]
        return flat[0] if len(flat) == 1 else self.term("bag", op, d, *sorted(flat))

    def take(self, node: Node, info: OpInfo, at: Iteration) -> tuple[Term, ...]:
        lanes = self.lanes(self.dialect.operands(node)[0], at)
        wanted = self.field(node, info)
        if any(not 0 <= i < len(lanes) for i in wanted):
            raise Unjudged("a lane that is not there")
        return lane_roles.take(lanes, wanted)

    def join(self, node: Node, info: OpInfo, at: Iteration) -> tuple[Term, ...]:
        return lane_roles.join(self.lanes(o, at) for o in self.dialect.operands(node))

    def constants(self, node: Node, info: OpInfo, at: Iteration) -> tuple[Term, ...]:
        return tuple([self.constant(self.scalar(node), v) for v in self.field(node, info)])

    def open(self, node: Node, info: OpInfo, at: Iteration) -> tuple[Term, ...]:
        axes = self.field(node, info)
        lanes = self.lanes(self.dialect.operands(node)[0], at)
        own, rest = divmod(len(lanes), math.prod(n for _, n in axes))
        if rest:
            raise Unjudged("lanes that are no multiple of the iterations")
        return lane_roles.opened(lanes, self.block(axes, at), own)

    def close(self, node: Node, info: OpInfo, at: Iteration) -> tuple[Term, ...]:
        axes, inner = self.field(node, info), self.dialect.operands(node)[0]
        blocks = range(math.prod(n for _, n in axes))
        return lane_roles.join(self.lanes(inner, self.of_block(axes, b, at)) for b in blocks)

    def fold(self, node: Node, info: OpInfo, at: Iteration) -> tuple[Term, ...]:
        """The lanes of a fold: each folds neighbouring lanes, over closed axes and loops, in unspecified order."""
        source, *ranges = self.dialect.operands(node)
        op, d, count = self.op_of(node, info), self.scalar(node), self.lanes_of(node)
        closed: dict[int, None] = {}
        loops: list[Term] = []
        for r in ranges:
            opened = self.by_key.get(self.dialect.opkey(r))
            if opened is not None and opened.role == "open":
                closed |= dict.fromkeys(a for a, _ in self.field(r, opened))
            else:
                loops += self.lanes(r, at)
        if self.lanes_of(source) % count:
            raise Unjudged("lanes that are no multiple of those of their fold")
        there = [lane_roles.groups(self.lanes(source, w), count) for w in self.iterations(closed, at)]
        out = []
        for k in range(count):
            items = lane_roles.join([own[k] for own in there])
            if loops:
                out.append(self.term("loops", op, d, *sorted(loops), "of", *sorted(items)))
            elif len(items) == 1:
                out.append(items[0])
            else:
                out.append(self.bag(op, d, items) if self.is_integer(d) else self.term("fold", op, d, *sorted(items)))
        return tuple(out)

    # both sides

    def is_right(self) -> bool:
        """True if the result has the type of the match, and its lanes at every iteration."""
        if self.dialect.type(self.root) != self.dialect.type(self.result) or self.info(self.root) is None:
            return False
        for at in self.iterations(self.axes, (0,) * len(self.axes)):
            for node in self.nodes.values():  # operands first
                if not self.axes:
                    self.lanes(node, at)
            pairs = zip(self.lanes(self.root, at), self.lanes(self.result, at), strict=True)
            if not all(self.becomes(p, t) for p, t in pairs):
                return False
        return True

    def becomes(self, p: Term, t: Term) -> bool:
        """True if `t` may replace `p`: it is the same term, or does a fold of `p` in some order."""
        if p == t:
            return True
        before, after = self.entries[p], self.entries[t]
        if before[0] == "fold":
            return self.in_some_order(before, t)
        if before[0] != "op" or before[:4] != after[:4] or len(before) != len(after):
            return False
        return all(self.becomes(a, b) for a, b in zip(before[4:], after[4:], strict=True))

    def in_some_order(self, before: tuple[Any, ...], t: Term) -> bool:
        """True if a term combines the items of a fold, each as often as it occurs, by the fold's op alone."""
        _, op, d, *items = before
        left = list(items)
        stack = [t]
        while stack:
            at = stack.pop()
            entry = self.entries[at]
            if at in left:
                left.remove(at)
            elif entry[:4] == ("op", op, d, ()):
                stack += entry[4:]
            elif entry[:3] == ("fold", op, d):
                stack += entry[3:]
            else:
                return False
        return not left


def judged(dialect: Dialect, root: Node, result: Node, leaves: Sequence[Node]) -> bool:
    """True if the lanes show a firing right."""
    try:
        return Instance(dialect, leaves, root, result).is_right()
    except Exception:  # a false rule may build a malformed node, which shows nothing
        return False


class Checks:
    """The checks that generated code makes beyond the extents of proofs; findings are kept by rule, sizes and static fields."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.remembered: dict[Hashable, bool] = {}

    def stands_in(self, root: Node, result: Node, rule: str, leaves: Sequence[Node]) -> bool:
        """True if the lanes show a firing right that no proof covers."""
        key = self.key(root, result, rule, leaves)
        found = None if key is None else self.remembered.get(key)
        if found is None:
            found = judged(self.dialect, root, result, leaves)
            if key is not None:
                if len(self.remembered) >= MOST_REMEMBERED:
                    self.remembered.clear()
                self.remembered[key] = found
        return found

    def key(self, root: Node, result: Node, rule: str, leaves: Sequence[Node]) -> Hashable:
        """The cache key of a finding: the structure of both sides over their operands. None if the finding depends on more, or
        the structure is too large or has no hash.
        """
        try:
            made = Instance(self.dialect, leaves, root, result)
            if made.axes:  # the finding also depends on the axes that each operand is free of
                return None
            numbers: dict[int, int] = {}
            out: list[Hashable] = [rule]
            for node in made.nodes.values():
                numbers[id(node)] = len(numbers)
                info, value = made.info(node), self.dialect.const_value(node)
                said: list[Hashable] = [self.dialect.type(node), made.lanes_of(node)]
                if value is not NOT_CONST:
                    said += exact(value)
                elif self.dialect.opkey(node) == made.invalid:
                    said.append("invalid")
                elif info is not None:
                    said += [info.name, *(exact(self.dialect.attr(node, f)) for f in info.fields)]
                    said += [numbers[id(o)] for o in self.dialect.operands(node)]
                out.append((*said, id(node) in made.leaves))
            key = (*out, numbers[id(root)], numbers[id(result)])
            hash(key)
            return key
        except Exception:  # as in `judged`
            return None
