"""Calls of a helper, by which its contract is tested: edges first, then what its rules call it with, and random ones."""

from __future__ import annotations

import functools
import importlib
import random
import reprlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from morok.dialect import NOT_CONST, Dialect, built_in
from morok.dsl import syntax as S
from morok.dsl.checked import CheckedRule
from morok.dsl.compile import compile_rules
from morok.dsl.compiled import link
from morok.dsl.contract import COMPILE_TIME
from morok.dsl.lane_count import lane_count
from morok.errors import HelperContractError, MorokError
from morok.ir.ranges import open_axes, open_ranges
from morok.marks import MARK, trust
from morok.prove import hardware_indices
from morok.prove.calls import sites
from morok.prove.contract_state import Tested, digests_of
from morok.prove.function_digest import helper_code
from morok.prove.made_arguments import Arguments
from morok.prove.trust.differential import graphs_at
from morok.prove.trust.graphs import Unmakeable
from morok.rewrite.abbreviate import abbreviate, op_name
from morok.rewrite.asserted_contracts import admissible, check_call

CALLS: Final = 1000  # calls that satisfy what the helper requires
ANSWERED: Final = 20  # of these, calls that it did not decline
TRIES: Final = 30_000
# roles of ops of which each lane is one of an operand, or a constant
_LANES: Final = frozenset({"take", "join", "constants"})
_TELLING: Final = frozenset({"counts", "renames", "launched"})  # facts that say of their first operand which loop it is
TWICE: Final = 100  # calls that are made again, with the same result
PAIRED: Final = 20  # calls that are made again for other ranges of the same kernel


def examined(extern: S.Extern, module: str, rules: Sequence[CheckedRule], step: Callable[[str], None]) -> Tested:
    """The finding of calls of a helper. Whatever it raises is a finding."""
    step(f"the import of {module}")
    trust(module)
    try:
        function = getattr(importlib.import_module(module), extern.name, None)
    except BaseException as problem:  # the module's own, whatever it is
        return Tested("false", message=f"{module} cannot be imported: {_named(problem)}")
    if function is None or not hasattr(function, MARK):
        return Tested("false", message=f"{extern.name} of {module} is not marked as a helper once the module has run")
    step(f"the reading of the code of {extern.name}")
    code = helper_code(function, module, [r.context for r in rules])
    files = digests_of(code.files)
    calls = 0
    messages = []
    for context in dict.fromkeys(r.context for r in rules):
        made = Examination(extern, [r for r in rules if r.context == context], function, code.numbers, step)
        try:
            state, message = made.run()
        except BaseException as problem:
            state, message = "untested", f"the contract of {extern.name} cannot be tested: {_named(problem)}"
        calls += made.calls
        messages += [message] if message else []
        if state != "tested":
            break
    return Tested(state, calls, "\n".join(dict.fromkeys(messages)), code.digest, files)


def _named(problem: BaseException) -> str:
    try:
        return f"{type(problem).__name__}: {problem}"[:500]
    except BaseException:
        return type(problem).__name__


Make = Callable[[], Any]


def _nothing() -> None:
    return None


def _always(context: Any) -> Make:
    return lambda: context


def _context_of(rule: CheckedRule) -> Callable[[Any], Any] | None:
    """The maker of a graph's context: the function `of` of the class that the group names, in the helpers' module."""
    found: Callable[[Any], Any] | None = getattr(
        getattr(sys.modules.get(str(rule.helpers)), str(rule.context), None), "of", None
    )
    return found


class _Seen(Exception):
    """A rule called the helper that is tested."""


class _Broken(Exception):
    """A call shows that the contract does not hold."""


class Examination:
    """Calls of a helper, and what they show.

    calls     those that satisfied what it requires
    answered  those of them that it did not decline
    """

    def __init__(
        self,
        extern: S.Extern,
        rules: Sequence[CheckedRule],
        function: Callable[..., Any],
        numbers: Sequence[Any],
        step: Callable[[str], None],
    ) -> None:
        self.extern = extern
        self.rules = rules
        self.dialect: Dialect = rules[0].dialect
        self.function = function
        self.numbers = numbers
        self.step = step
        self.rng = random.Random(0)
        self.maker, self.context = getattr(function, MARK)
        self.contextual = rules[0].context is not None
        self.context_of = None if not self.contextual else _context_of(rules[0])
        self.calls = self.answered = 0
        self.own = built_in(self.dialect)
        self.counted = hardware_indices.counted(extern) if self.own else []
        self.pure = not any(_mentions(e, "free_of") for e in extern.ensures) and not self.contextual

    def run(self) -> tuple[str, str]:
        """The state of the contract, and what is to be said of it."""
        name = self.extern.name
        if self.contextual and self.context is None and self.context_of is None:
            return "untested", f"{name} takes a context: @morok.helper(context=..) makes one for the tests"
        try:
            tried = 0
            for args, context in self.arguments():
                tried += 1
                self.one(args, context)
                if (self.calls >= CALLS and self.answered >= ANSWERED) or tried >= TRIES:
                    break
        except _Broken as broken:
            return "false", f"{name} {broken}"
        hint = "@morok.helper(arguments=..) makes others"
        if self.calls < CALLS:
            return (
                "untested",
                f"{name}: only {self.calls} of {tried} calls that were made up satisfy what it requires: {hint}",
            )
        if self.answered < ANSWERED:
            return "untested", f"{name} answered {self.answered} of {self.calls} calls, and declined the others: {hint}"
        if self.extern.partial and self.answered == self.calls:
            return "tested", f"{name} may decline (`?`), and never did in {self.calls:,} calls"
        return "tested", ""

    def arguments(self) -> Iterator[tuple[tuple[Any, ...], Make]]:
        """Edges; what the helper's module makes; what its rules call it with on graphs that they match; and random ones. With
        what makes the context of each.
        """
        made = Arguments(self.extern, sites(self.extern.name, self.rules), self.numbers, self.rng)
        sources: list[Iterator[tuple[tuple[Any, ...], Make]]] = []
        if self.own:
            sources.append(self.matched())
        if not self.contextual or self.context is not None:
            make = self.context or _nothing
            yield from ((args, make) for args in made.edges())
            if self.maker is not None:
                sources.append((args, make) for args in self.given())
            sources.append((args, make) for args in made.random())
        while sources:
            for source in list(sources):
                for _ in range(10):
                    found = next(source, None)
                    if found is None:
                        sources.remove(source)
                        break
                    yield found

    def given(self) -> Iterator[tuple[Any, ...]]:
        """The arguments that `arguments` of the mark makes, again and again."""
        while True:
            none = True
            for args in self.maker(self.rng):
                none = False
                if not isinstance(args, tuple) or len(args) != len(self.extern.params):
                    raise _Broken(
                        f"has `arguments` that make {_shown(args)}, and not {len(self.extern.params)} arguments"
                    )
                yield args
            if none:
                return

    def matched(self) -> Iterator[tuple[tuple[Any, ...], Make]]:
        """The arguments of calls by its rules, on graphs that they match; there the context is the graph's, if it can be."""
        seen: list[tuple[Any, ...]] = []

        def watch(name: str, helper: Any) -> Any:
            def watched(*args: Any) -> Any:
                if name != self.extern.name:
                    return helper(*args)
                seen.append(args[: len(self.extern.params)])
                raise _Seen

            return watched

        for rule in self.rules:
            match = link(compile_rules([rule], self.dialect), self.dialect, watch)
            by_key = {self.dialect.ops[op].key: f for op, f in match.items() if op}
            other = match.get("", lambda *_: None)
            try:
                for graph, _, _ in graphs_at(rule, TRIES, rule.instances):
                    make = (
                        (self.context or _nothing)
                        if self.context_of is None
                        else functools.partial(self.context_of, graph)
                    )
                    try:
                        by_key.get(self.dialect.opkey(graph), other)(graph, make())
                    except _Seen:
                        yield from ((args, make) for args in seen)
                    except Exception:  # of another helper: its own tests find that
                        pass
                    seen.clear()
            except Unmakeable:
                continue

    def one(self, args: tuple[Any, ...], context: Make) -> None:
        """One call, if it satisfies what the helper requires; _Broken if it shows that the contract does not hold."""
        extern = self.extern
        seed = self.calls
        if not admissible(extern, self.dialect, args, seed):
            return
        shown = f"{extern.name}({', '.join(f'{p.name} = {self.text(a)}' for p, a in zip(extern.params, args, strict=True))})"
        self.step(shown)
        self.calls += 1
        result = self.call(args, context, shown)
        if self.pure and self.calls <= TWICE and not self.same(result, self.call(args, context, shown)):
            raise _Broken(f"is not pure: it returned two different results for {shown}")
        if result is not None:
            self.answered += 1
            self.check_types(result, args, shown)
            self.check_leaves(result, args, shown)
        try:
            check_call(extern, self.dialect, args, result, seed)
        except HelperContractError as broken:
            raise _Broken(f"breaks its contract at {shown}: {broken.message}") from None
        except (ArithmeticError, LookupError, TypeError) as problem:
            raise _Broken(f"breaks its contract at {shown}: what it ensures has no value: {_named(problem)}") from None
        if result is not None and self.answered <= PAIRED:
            for fact in self.counted:
                self.check_pairs(fact, args, result, shown)

    def check_pairs(self, fact: S.ECall, args: tuple[Any, ...], result: Any, shown: str) -> None:
        """An error where another range of the same kernel gets a hardware index that counts this one, too."""
        mine = hardware_indices.read(fact, self.named(args, result))
        if mine is None:
            raise _Broken(f"says `counts` of what is no name or number at {shown}")
        r, _ = mine
        for p, q in hardware_indices.pairs(r):
            try:
                context = self.context_of(p + q) if self.context_of is not None else (self.context or _nothing)()
            except MorokError:  # a kernel that cannot be launched
                continue
            numbers = []
            for x in (p, q):
                given = tuple([x if a is r else a for a in args])
                found = self.call(given, _always(context), shown)
                read = None if found is None else hardware_indices.read(fact, self.named(given, found))
                numbers += [] if read is None else [read[1]]
            if len(numbers) == 2 and not hardware_indices.count_both((p, q), (numbers[0], numbers[1])):
                both = f"{self.text(p)} and {self.text(q)} of one kernel"
                raise _Broken(f"breaks its contract: {both} get {self.text(numbers[0])} and {self.text(numbers[1])}")

    def named(self, args: tuple[Any, ...], result: Any) -> dict[str, Any]:
        """The parameters and results of a call by their names."""
        declared = self.extern.results
        results = (result,) if len(declared) == 1 else result
        given = zip(self.extern.params, args, strict=True)
        return {p.name: a for p, a in (*given, *zip(declared, results, strict=True))}

    def call(self, args: tuple[Any, ...], context: Make, shown: str) -> Any:
        given = tuple([list(a) if isinstance(a, list) else a for a in args])
        before = [list(a) if isinstance(a, list) else a for a in given]
        last = (context(),) if self.contextual else ()
        try:
            result = self.function(*given, *last)
        except MemoryError:
            raise _Broken(f"runs out of memory at {shown}") from None
        except BaseException as problem:
            raise _Broken(f"raises {_named(problem)} at {shown}") from None
        if any(isinstance(a, list) and a != b for a, b in zip(given, before, strict=True)):
            raise _Broken(f"changes its arguments at {shown}")
        return result

    def same(self, a: Any, b: Any) -> bool:
        if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
            return len(a) == len(b) and all(self.same(x, y) for x, y in zip(a, b, strict=True))
        if a is b:
            return True
        if type(a) is not type(b):
            return False
        return bool(self.dialect.same(a, b)) if self.is_node(a) else bool(a == b or a != a)

    def is_node(self, x: Any) -> bool:
        kind = getattr(self.dialect, "node", None)
        if kind is not None:
            return isinstance(x, kind)
        return not isinstance(x, (bool, int, float, str, list)) and x is not None

    def check_types(self, result: Any, args: tuple[Any, ...], shown: str) -> None:
        """An error unless results are as many, and of such kinds, as declared."""
        declared = self.extern.results
        results = (result,) if len(declared) == 1 else result
        if not isinstance(results, (tuple, list)) or len(results) != len(declared):
            what = f"{len(results)} results" if isinstance(results, (tuple, list)) else f"{type(result).__name__}"
            raise _Broken(f"returns {what}, not {len(declared)} results, at {shown}")
        nodes = [a for a in args if self.is_node(a)]
        for p, r in zip(declared, results, strict=True):
            wanted = self.wanted(p, r, nodes)
            if wanted:
                raise _Broken(f"returns {_shown(r)} for `{p.name}`, not {wanted}, at {shown}")

    def check_leaves(self, result: Any, args: tuple[Any, ...], shown: str) -> None:
        """An error where a result has more in it than arguments, constants and what is computed of these: loops, variables,
        storage, what is read from it. That has no value where nothing around gives it one, whatever a contract says of it.
        """
        results = (result,) if len(self.extern.results) == 1 else result
        given = [n for p, a in zip(self.extern.params, args, strict=True) for n in self.nodes_in(p, a)]
        known = {id(n): n for n in self.unknown(given, {})}
        for p, r in zip(self.extern.results, results, strict=True):
            for strange in self.strange(p, self.nodes_in(p, r), given, known):
                what = f"which hangs on {strange} that it was not given"
                raise _Broken(f"returns {self.text(r)} for `{p.name}`, {what}, at {shown}")

    def strange(self, p: S.Param, made: Sequence[Any], given: Sequence[Any], known: Mapping[int, Any]) -> Iterator[str]:
        """The nodes, loops and axes that a result depends on and no argument gives, as text."""
        anew = self.anew(p)
        for n in self.unknown(made, known):
            if not self.computed(n) and op_name(self.dialect, self.dialect.opkey(n)) not in anew:
                yield self.text(n)
        if self.own and "Range" not in anew:
            loops, axes = (frozenset[Any]().union(*map(of, given)) for of in (open_ranges, open_axes))
            yield from (self.text(loop) for n in made for loop in open_ranges(n) - loops)
            yield from (f"axis {axis}" for n in made for axis in open_axes(n) - axes)

    def unknown(self, roots: Sequence[Any], known: Mapping[int, Any]) -> Iterator[Any]:
        """The nodes at and below these, each once, down to known ones. Equal nodes may be two objects, in a foreign dialect."""
        seen: dict[int, Any] = {}  # kept, so that ids stay their own
        stack = list(roots)
        while stack:
            n = stack.pop()
            if id(n) in known or id(n) in seen:
                continue
            seen[id(n)] = n
            if self.own or not any(self.dialect.same(n, k) for k in known.values()):
                yield n
                stack.extend(self.dialect.operands(n))

    def nodes_in(self, p: S.Param, a: Any) -> list[Any]:
        """The nodes that an argument, or a result, is, or holds as items."""
        kind = p.type.name if isinstance(p.type, S.TName) else ""
        if kind not in COMPILE_TIME or kind == "bool":
            return [a] if self.is_node(a) else []
        if kind != "seq" or getattr(self.dialect, "node", None) is None:  # then nothing tells nodes from other items
            return []
        items, nodes = [a], []
        while items:
            at = items.pop()
            if isinstance(at, (tuple, list)):
                items.extend(at)
            elif self.is_node(at):
                nodes.append(at)
        return nodes

    def anew(self, p: S.Param) -> frozenset[str]:
        """The ops that a result may have made anew: storage where it is a pointer, loops where the contract says which it is."""
        if not self.own:
            return frozenset()
        if isinstance(p.type, S.TPointer):
            return frozenset({"DefineLocal", "DefineReg"})
        told = [
            at.args[0]
            for e in self.extern.ensures
            for at in S.walk(e)
            if isinstance(at, S.ECall) and at.name in _TELLING
        ]
        named = any(isinstance(a, S.EName) and a.name == p.name for a in told)
        return frozenset({"Range", "Special"} if named else {"Invalid"} if isinstance(p.type, S.TMaybeInvalid) else ())

    def computed(self, n: Any) -> bool:
        """True of a constant, and of a node that has a value where its operands have one, or where its evaluator says so."""
        if self.dialect.const_value(n) is not NOT_CONST:
            return True
        info = self.dialect.ops.get(op_name(self.dialect, self.dialect.opkey(n)))
        if info is None:
            return False
        if info.role in _LANES or (self.own and info.role == "fold"):
            return True
        return info.evaluate is not None and (self.own or bool(info.params))

    def wanted(self, p: S.Param, r: Any, nodes: Sequence[Any]) -> str:
        """The kind that a result should have instead; "" where it has the declared one."""
        kind = p.type.name if isinstance(p.type, S.TName) else ""
        if kind == "const":
            return "" if type(r) in (bool, int, float) else "a number of Python's"
        if kind == "int":
            return "" if type(r) is int else "an int"
        if kind == "seq":
            return "" if isinstance(r, (tuple, list)) else "a sequence"
        if kind == "dtype":
            return "" if any(r is d or r == d for d in self.dialect.dtypes.values()) else "a dtype"
        if kind == "bool" and type(r) is bool and not any(self.element(n) == "bool" for n in nodes):
            return ""
        if not self.is_node(r):
            return "a node" if kind != "bool" else "a bool"
        if kind in self.dialect.dtypes:
            fits = self.element(r) == kind and self.lanes_fit(r, nodes)
            return "" if fits else f"a node of {kind}, in as many lanes as it is given"
        if isinstance(p.type, S.TPointer) or kind == "ptr" or not nodes:
            return ""
        given = self.element(nodes[0])  # which is what proofs take it for
        return "" if self.element(r) == given and self.lanes_fit(r, nodes) else f"a node of {given}"

    def element(self, node: Any) -> str:
        d = self.dialect.type(node)
        d = getattr(self.dialect, "element", lambda x: x)(d)
        return next((name for name, x in self.dialect.dtypes.items() if x is d or x == d), str(d))

    def lanes_fit(self, r: Any, nodes: Sequence[Any]) -> bool:
        lanes = lane_count(self.dialect)
        return lanes(r) in {1, *map(lanes, nodes)}

    def text(self, a: Any) -> str:
        try:
            return str(abbreviate(self.dialect, a)) if self.is_node(a) else _shown(a)
        except Exception:  # what a node of a foreign dialect is shown by is the dialect's
            return type(a).__name__


def _shown(a: Any) -> str:
    try:
        return reprlib.repr(a)
    except Exception:
        return type(a).__name__


def _mentions(e: Any, name: str) -> bool:
    return any(isinstance(at, S.ECall) and at.name == name for at in S.walk(e))
