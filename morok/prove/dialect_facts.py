"""The facts of a dialect that proofs learn something from, each with its trial: what no trial is of, no proof knows (`MEANT`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from morok.dialect import Dialect
from morok.dsl.declared import Mistake
from morok.dsl.functions import FUNCTIONS
from morok.dsl.values import NoValue
from morok.prove import smt
from morok.prove.dialect_agreement import said
from morok.prove.dialect_values import misnumbered
from morok.prove.encoding.facts import exact
from morok.prove.semantics.term import Unsupported
from morok.prove.smt import TRUE


@dataclass(frozen=True, slots=True)
class Case:
    """A node that facts are asked about.

    op      the name of its op; "" of a constant
    given   the values of its operands
    result  the name of its dtype
    value   its value; NoValue where it has none
    worlds  the encodings that the theory has of its dtype
    shown   the node in words
    lanes   how many it has, each of which has a value; the fact is asked once for each of them
    """

    dialect: Dialect
    node: Any
    op: str
    given: Sequence[Any]
    result: str
    value: Any
    worlds: Sequence[Any]
    shown: str
    lanes: int = 1

    def asked(self, fact: str) -> Any:
        """The dialect's answer: by its function, or by its template where it has that alone."""
        d = self.dialect
        if fact in d.facts:
            return d.facts[fact](self.node)
        return eval(d.inline[fact].format(n="hole_n"), {**getattr(d, "names", {}), "_d": d, "hole_n": self.node})


def node_mistakes(case: Case) -> Iterator[Mistake]:
    """The facts that do not hold of a node."""
    for fact, trial in OF_NODES.items():
        if fact in case.dialect.facts or fact in case.dialect.inline:
            try:
                wrong = trial(case, fact)
            except Exception as problem:
                wrong = f"{fact} of {case.shown} raises {said(problem)}"
            if wrong:
                asked = () if fact in UNASKED else (fact,)
                yield Mistake("", f"facts[{fact!r}]", wrong, "what is so of the node's value", facts=asked)
    yield from _unlike_numbers(case)


def _unlike_numbers(case: Case) -> Iterator[Mistake]:
    """The facts about a node that are numbers, and none of Python's own."""
    for fact in NUMBERS:
        if fact in case.dialect.facts or fact in case.dialect.inline:
            whole = FUNCTIONS[fact].result == "int" or isinstance(case.value, int)
            try:
                wrong = misnumbered(case.asked(fact), whole)
            except Exception:  # it may have no answer here
                continue
            if wrong:
                yield Mistake(
                    "", f"facts[{fact!r}]", f"{fact} of {case.shown} is {wrong}", "an int or a float", facts=(fact,)
                )


def _counted(case: Case, fact: str) -> str:
    """The fact is the number of lanes."""
    found = case.asked(fact)
    return "" if found == case.lanes else f"{fact} of {case.shown} is {found!r}, and it has {case.lanes}"


def _bounded(case: Case, fact: str) -> str:
    """The fact is a bound of the value, on its side."""
    if not isinstance(case.value, int):
        return ""
    bound = case.asked(fact)
    good = bound <= case.value if fact == "vmin" else case.value <= bound
    return "" if good else f"{fact} of {case.shown} is {bound!r}, and its value {case.value!r}"


def _defined(case: Case, fact: str) -> str:
    """The mistake where the fact holds and the node has no value, as text."""
    return f"defined({case.shown}) holds, and it has no value" if case.value is NoValue and case.asked(fact) else ""


def _fits(case: Case, fact: str) -> str:
    """The mistake where the fact holds, of the node or of its op and operands, and the exact result does not fit, as text."""
    d = case.dialect
    if not case.op or not all(isinstance(v, int) for v in case.given):
        return ""
    holds = bool(case.asked(fact))
    of_parts = d.facts.get("no_overflow_of")
    if of_parts is not None:
        holds |= bool(of_parts(d.ops[case.op].key, tuple(d.operands(case.node))))
    if holds and any(_exceeds(world, case) for world in case.worlds):
        return f"no_overflow({case.shown}) holds, and the exact result is no value of {case.result} to the theory"
    return ""


def _exceeds(world: Any, case: Case) -> bool:
    """True if the exact result of an op is beyond a dtype, as the prover takes the fact that it is not."""
    try:
        if not world.is_int(case.result):
            return False
        result = exact(world, case.op, [world.numbers.const(int(v)) for v in case.given])
        return smt.simplify(smt.term(world.fits(case.result, result))) is not TRUE
    except Unsupported:  # rules that ask are not proved
        return False


OF_NODES: Final[Mapping[str, Callable[[Case, str], str]]] = {
    "vmin": _bounded,
    "vmax": _bounded,
    "defined": _defined,
    "no_overflow": _fits,
    "lanes": _counted,
}
UNASKED: Final = frozenset(("lanes",))  # what matchers ask though no rule names it: a mistake in it is one in all rules
# with the number of the dtypes
OF_DTYPES: Final[Mapping[str, int]] = {"bits": 1, "is_int": 1, "is_float": 1, "safe_cast": 2}
NUMBERS: Final = tuple(
    n for n, f in FUNCTIONS.items() if f.fact and f.params == ("node",) and f.result in ("int", "bound")
)
TRIED: Final = frozenset((*OF_NODES, *OF_DTYPES))


def dtype_mistakes(dialect: Dialect, worlds: Iterable[Any]) -> Iterator[Mistake]:
    """The first mistake in each fact where it and an encoding of the theory differ about dtypes, of all that there are."""
    for world, (fact, of) in itertools.product(worlds, OF_DTYPES.items()):
        ask = dialect.facts.get(fact)
        tried = itertools.product(dialect.dtypes, repeat=of) if ask is not None else ()
        found = (
            _fact_of(fact, ask, [dialect.dtypes[n] for n in names], getattr(world, fact), names) for names in tried
        )
        yield from itertools.islice(itertools.chain.from_iterable(found), 1)


def _fact_of(fact: str, ask: Any, given: Sequence[Any], meaning: Any, names: tuple[str, ...]) -> Iterator[Mistake]:
    shown = ", ".join(names)
    try:
        want = meaning(*names)
    except Exception:  # the theory says nothing of it: rules that ask are not proved
        return
    try:
        got = ask(*given)
    except Exception as problem:
        yield Mistake("", f"facts[{fact!r}]", f"{fact}({shown}) raises {said(problem)}", repr(want), facts=(fact,))
        return
    if (wrong := misnumbered(got, whole=isinstance(want, int))) or got != want:
        yield Mistake(
            "",
            f"facts[{fact!r}]",
            f"{fact}({shown}) is {wrong or repr(got)}, and {want!r} to the theory",
            facts=(fact,),
        )
