"""Random rules by theme: what each makes is the text of one rule, true by construction, nearly true, or anything.

In the templates D is a dtype of the domain that a line begins with, F a dtype of floats, K a number, {..} an integer to rephrase;
in those about lanes M is a function of the place i in a sequence of length L, Z a place that is in a list only where it is the
first, OP1 and OP2 ops; in contexts HOLE is a value; in those of places E is the function so far.
"""

from __future__ import annotations

import functools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from morok.prove.attack import conjectures, expansions, identities, op_laws
from morok.prove.attack.dtype_ends import ends
from morok.prove.attack.features import KINDS
from morok.prove.attack.guards import Clauses, Rephrased, holding
from morok.prove.attack.random_terms import DOMAINS, FLOATS, INTS, TYPINGS, Printer, Term, Terms, substituted, walk
from morok.prove.attack.rule_templates import templates


def _guarded(rng: random.Random, terms: Terms, seen: set[str], chance: float) -> str:
    """Random clauses over what the pattern has, sometimes."""
    if rng.random() >= chance:
        return ""
    nodes = {n: d for n, d in {**terms.variables, **terms.constants}.items() if n in seen}
    values = [f"{n}v" for n, d in terms.constants.items() if n in seen and d in (*INTS, "index")]
    return " " + Clauses(rng, nodes, values).clauses(rng.choice((1, 1, 2, 2, 3)))


def algebra(rng: random.Random, chance: float = 0.5, context: bool = False, anywhere: bool = False) -> str:
    """An identity, its letters terms, perhaps under an op or inside a structure, and under a guard."""
    left, right, _ = identities.some(rng, context, anywhere)
    terms = Terms(rng)
    letters = {t.name: t.dtype for t in walk(left) if t.kind == "var"}
    by = {
        name: terms.term(d, 0 if context or anywhere else rng.choice((0, 0, 0, 1, 1, 2))) for name, d in letters.items()
    }
    left, right = substituted(left, by), substituted(right, by)
    while not context and rng.random() < 0.3 and (above := _above(rng, terms, left, right)) is not None:
        left, right = above
    printer = Printer(rng, {**terms.variables, **terms.constants})
    before, after = "HOLE", "HOLE"
    if context:
        options = templates()["index contexts" if left.dtype == "index" else "contexts"]
        before = rng.choice(options).replace("ptr(D)", f"ptr({left.dtype})")
        after = target_of(before)
    before, after = before.replace("HOLE", printer.pattern(left)), after.replace("HOLE", printer.target(right))
    return f"{before}{_guarded(rng, terms, printer.seen, chance)} ~> {after}"


def elsewhere(rng: random.Random) -> str:
    """An identity at a dtype that has its ops, and that it is not meant for."""
    return algebra(rng, 0.1, anywhere=True)


def target_of(pattern: str) -> str:
    """A pattern without its annotations and bindings, as a target."""
    return re.sub(r": (ptr\(\w+\)|index\b|i32\b)", "", re.sub(r"f0 @ Reshape\(e0, n0\)", "f0", pattern))


def _above(rng: random.Random, terms: Terms, left: Term, right: Term) -> tuple[Term, Term] | None:
    """Both sides under one op."""
    result = rng.choice((left.dtype, left.dtype, "bool", rng.choice(DOMAINS["any"])))
    options = [t for t in TYPINGS[result] if left.dtype in t.operands]
    if not options:
        return None
    typing = rng.choice(options)
    place = rng.choice([k for k, d in enumerate(typing.operands) if d == left.dtype])
    others = [terms.term(d, 0) for d in typing.operands]
    made = [
        Term("op", typing.op, result, tuple(one if k == place else o for k, o in enumerate(others)))
        for one in (left, right)
    ]
    return made[0], made[1]


def structure(rng: random.Random) -> str:
    """An identity inside a structure, or one of structures."""
    if rng.random() < 0.7:
        return algebra(rng, 0.3, context=True)
    domain, _, text = rng.choice(templates()["views"]).partition(": ")
    text = re.sub(r"\bD\b", rng.choice(DOMAINS[domain]), text)
    if rng.random() < 0.6:
        return text
    pattern, rest = parts(text)
    return f"{pattern} {holding(rng)} {rest}"


def conditional(rng: random.Random) -> str:
    """A rule that holds under its guard, which is said in another way; now and then nearly said."""
    domain, _, text = rng.choice(templates()["conditional" if rng.random() < 0.75 else "sized"]).partition(": ")
    at = "index" if rng.random() < 0.6 and domain == "exact" else rng.choice(DOMAINS[domain])
    k = rng.choice((0, 1, 2, 3, 5, 8, 11, 20, 100, 127))
    text = re.sub(r"\bD\b", at, re.sub(r"\bK\b", str(k), re.sub(r"\bB\b", rng.choice(INTS), text)))
    pattern, rest = parts(text)
    values = re.findall(r"@const\((\w+)\)", pattern)
    values += [n for n in ("n", "i") if re.search(rf" x {n}\b|\[{n}\]", pattern)]
    nodes = dict.fromkeys(re.findall(r"\b([xy])\b(?! [a-z])", pattern), at)
    many = re.findall(r"\b(xs)\b", pattern)
    clauses = Clauses(rng, nodes, values, re.findall(r"\b(is)\b", pattern), many)
    said = Rephrased(clauses)
    if rng.random() < 0.1:
        rest = _weaker(rng, rest)
    elif rng.random() < 0.25:
        rest = _nearly(rng, rest)
    elif rng.random() < 0.4:
        rest = re.sub(
            r"if \{([^{}]*)\} (?:==|<=) (\d)(?= ~>)", lambda found: _existing(rng, found[1], int(found[2])), rest
        )

    def again(found: re.Match[str]) -> str:
        return said.integer(found[1], rng.choice((0, 1, 1, 2, 2)))

    made = re.sub(r"\{([^{}]*)\}", again, _stronger(rng, _turned(rng, rest)))
    guard = re.match(r"(if )(.*?)( let | ~>)", made)
    if guard is not None and rng.random() < 0.5:
        made = f"if {said.condition(guard[2], rng.choice((1, 1, 2)))}{made[guard.end(2) :]}"
    return f"{pattern} {' '.join([*said.named, made])}"


def _weaker(rng: random.Random, clauses: str) -> str:
    """Clauses without their guard, or without one of the conditions in it."""
    guard = re.match(r"if (.*?)(?= let | ~> )", clauses)
    if guard is None:
        return clauses
    conditions = guard[1].split(" and ")
    del conditions[rng.randrange(len(conditions))]
    kept = " and ".join(conditions) if rng.random() < 0.7 else ""
    return (f"if {kept}" if kept else "") + clauses[guard.end() :].removeprefix("" if kept else " ")


CHANGES: Final[Mapping[str, tuple[str, ...]]] = {
    "<": ("<=",),
    "<=": ("<",),
    ">": (">=",),
    ">=": (">",),
    "==": ("<=", ">="),
    "!=": (">=",),
    "vmin": ("vmax",),
    "vmax": ("vmin",),
}
OPPOSITE: Final[Mapping[str, str]] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def _turned(rng: random.Random, clauses: str) -> str:
    """Clauses in which a comparison is said as the negation of its opposite: the same for all numbers."""

    def opposite(found: re.Match[str]) -> str:
        if rng.random() < 0.5 or "not" in found[1]:
            return found[0]
        return f"{found[1]}not ({found[2]} {OPPOSITE[found[3]]} {found[4]})"

    return re.sub(r"(\bif |\band )([^ ]+(?: % [^ ]+)?) (<=|>=|==|!=|<|>) ([^ ]+)(?= and | ~>| let )", opposite, clauses)


def _existing(rng: random.Random, size: str, wanted: int) -> str:
    """A clause that has a value only where a size is the one that is wanted."""
    by = size if wanted == 0 else f"({size} - {wanted})"
    f, g = rng.choice(("0", size)), rng.choice(("1", size))
    places = [f"[{f}][{by}]", f"[{f}][- {by}]", f"zip([0 for _k in 0..{size}], [0 for _k in 0..{wanted}])"]
    if wanted == 0:  # no size is less
        places += [f"[{f}, {g}][0 - {size}]", f"[{f}, {g}, 2][- {size}]", f"[{f}, {g}][min(0, 0 - {size})]"]
    return f"let u = {rng.choice(places)}"


def _stronger(rng: random.Random, clauses: str) -> str:
    """Clauses in which what is below something is said of what is no less than it."""

    def stronger(found: re.Match[str]) -> str:
        below = found[4] in ("<", "<=")
        if below == bool(found[2]) or rng.random() < 0.4:
            return found[0]
        way = rng.choice(
            (
                "abs(E)",
                "gcd(E, E)",
                "gcd(E, 0)",
                "gcd([E])",
                "gcd([E, 0])",
                "gcd([E, E])",
                "max(E, 0)",
                "max([E, 0 - E])",
                "max(E, 1)",
            )
        )
        return f"{found[1]}{found[2] or ''}{{{way.replace('E', found[3])}}} {found[4]} "

    return re.sub(r"(\bif |\band )(not \()?\{([^{}]*)\} (<=|>=|<|>) ", stronger, clauses)


def parts(text: str) -> tuple[str, str]:
    """The pattern of a rule, and the rest from the first clause on."""
    places = [text.index(word) for word in (" if ", " let ", " ~> ") if word in text]
    cut = min(places)
    return text[:cut], text[cut + 1 :]


def _nearly(rng: random.Random, clauses: str) -> str:
    """Clauses with one comparison or sign changed."""
    places = list(re.finditer(r"<=|>=|==|!=|<|>|vmin|vmax", clauses.partition("~>")[0]))
    if not places:
        return clauses
    m = rng.choice(places)
    other = rng.choice(CHANGES[m[0]])
    return clauses[: m.start()] + other + clauses[m.end() :]


def nearly(rng: random.Random) -> str:
    """An equation that holds of real numbers, or of exact functions."""
    text = rng.choice(templates()["nearly"])
    return text.replace(": F", f": {rng.choice((*FLOATS, 'f16', 'f16', 'f16', 'f16'))}")


FEW: Final = 9  # templates of rare rules that a word is in: what is in more is not rare
ELSEWHERE: Final = 13  # so many other templates it may be in
SELDOM: Final = frozenset({"MulAcc", "Reciprocal"})  # ops of random terms that few of them have


def rare(rng: random.Random, turn: int) -> str:
    """A rule over an op, or a function, that the other themes seldom have: each of these has its turn."""
    about = _about()
    word = sorted(about)[turn % len(about)]
    domain, _, text = rng.choice(about[word]).partition(": ")
    inexact = word if word in INEXACT else rng.choice(INEXACT)
    text = re.sub(r"\bD\b", rng.choice(DOMAINS[domain]), text).replace("INEXACT", inexact)
    if rng.random() < 0.7:
        return text
    pattern, rest = parts(text)
    return f"{pattern} {holding(rng)} {rest}"


INEXACT: Final = sorted(identities.INEXACT - {"Pow"})


@functools.cache
def _about() -> Mapping[str, Sequence[str]]:
    """The templates of rare rules by what is rare in them: each op that random terms seldom have, each function and operator,
    where few templates have it.
    """
    common = {t.op for typings in TYPINGS.values() for t in typings}.difference(INEXACT, SELDOM)
    words = (KINDS["op"] | KINDS["function"]) - common

    def said(section: str) -> Iterator[tuple[str, str]]:
        """Pairs of a word and a template that has it."""
        for line in templates()[section]:
            rule = re.sub("`[^`]*`", lambda found: found[0].replace("|", " "), line)
            for word in words.intersection(re.findall(r"\w+(?=[({[]| {)|\bInvalid\b|<<|>>|[|&^]", rule)):
                yield word, line

    found: dict[str, list[str]] = {}
    for word, line in said("rare"):
        found.setdefault(word, []).append(line)
    for word in INEXACT:
        found.setdefault(word, []).extend(line for line in templates()["rare"] if "INEXACT" in line)
    others = Counter(
        word for section in templates() if section not in ("rare", "promised") for word, _ in said(section)
    )
    return {word: lines for word, lines in found.items() if len(lines) <= FEW and others[word] <= ELSEWHERE}


def place(rng: random.Random, length: str) -> str:
    """A function of the place i in a sequence of this length: i itself, said in another way, or what is i in short ones."""
    e = "i"
    if rng.random() < 0.25:  # in a list, at a place that is in it only if it is the first
        few = rng.choice((1, 1, 1, 2, 2, 3, 8))
        first = rng.choice(
            (
                f"0 - i // {few}",
                "min(i, 0)",
                f"- ({length} // {few + 1})",
                f"min(0, {few} - {length})",
                f"0 - max(i - {few}, 0)",
            )
        )
        e = f"[i, {rng.choice(('0', f'({length} - 1 - i)', 'i // 2'))}, 0][{first}]"
    for _ in range(rng.choice((0, 1, 1, 2, 2))):
        k = rng.choice((1, 2, 3, 4)) if rng.random() < 0.5 else rng.randint(5, 64)
        way = rng.choice(templates()["places" if rng.random() < 0.6 else "places in short sequences"])
        for word, by in (("K", str(k)), ("L", length), ("E", e)):
            way = re.sub(rf"\b{word}\b", by, way)
        e = way
    return e


def lanes(rng: random.Random) -> str:
    """A rule about lanes, sequences or axes, with a function of places in it."""
    text, _, length = rng.choice(templates()["lanes"]).partition(" where L = ")
    at = rng.choice(DOMAINS["number"])
    unary = [t.op for t in TYPINGS[at] if t.operands == (at,)]
    binary = [t.op for t in TYPINGS[at] if t.operands == (at, at)]
    k = rng.choice((2, 4, 6, 8, 16, 32, 5))
    for word, by in (("D", at), ("OP1", rng.choice(unary)), ("OP2", rng.choice(binary)), ("K", str(k)), ("L", length)):
        text = re.sub(rf"\b{word}\b", by, text)
    first = rng.choice(
        (f"0 - {length}", f"- {length}", f"min(0, 1 - {length})", f"min({length}, 0)", f"0 - {length} // 2", "0")
    )
    text = re.sub(r"\bZ\b", first, re.sub(r"\bM\b", place(rng, length), text))
    if rng.random() < 0.4:
        pattern, rest = parts(text)
        many = [n for n in ("xs", "rs") if re.search(rf"\b{n}\b", pattern)]
        sequences = [n for n in ("is", "js") if re.search(rf"\b{n}\b", pattern)]
        nodes = {n: at for n in ("x", "y", "s") if re.search(rf"\b{n}: ", pattern)}
        text = f"{pattern} {Clauses(rng, nodes, (), sequences, many).clauses(rng.choice((1, 2)))} {rest}"
    return text


def alike(rng: random.Random) -> str:
    """Two parts of one form whose leaves have no names, taken for one."""
    at = rng.choice(("i8", "u8", "i16", "index", "f16", "bf16", "i32", "f32"))
    part = rng.choice(templates()["unnamed"])
    both = rng.random() < 0.5
    one, other = f"a @ {part}", f"b @ {part}" if both else part
    text = re.sub(r"\bD\b", at, rng.choice(templates()["alike"]))
    pattern, _, target = text.replace("ONE", one).replace("OTHER", other).partition(" ~> ")
    several = target == "a" and ".." not in part and rng.random() < 0.4
    for _ in range(rng.randint(1, 6) if several else 0):
        pattern = f"Where(Lt(_n: i32, _n: i32), {pattern}, a)"  # ignored variables are counted
    return f"{pattern} ~> {target}"


def anything(rng: random.Random) -> str:
    """Two random terms of one dtype."""
    terms = Terms(rng)
    at = rng.choice(DOMAINS["any"])
    left = terms.term(at, rng.choice((1, 2, 2, 3)))
    printer = Printer(rng, {**terms.variables, **terms.constants})
    before = printer.pattern(left)
    known = {n: d for n, d in terms.variables.items() if n in printer.seen}
    inside = [t for t in walk(left) if t.dtype == at and t is not left]
    if inside and rng.random() < 0.5:
        right = rng.choice(inside)
    else:
        later = Terms(rng)
        later.variables = dict(known)
        right = later.term(at, rng.choice((0, 1, 2)))
        if any(t.kind == "const" or (t.kind == "var" and t.name not in known) for t in walk(right)):
            right = next((Term("var", n, d) for n, d in known.items() if d == at), later.literal(at))
    return f"{before}{_guarded(rng, terms, printer.seen, 0.5)} ~> {printer.target(right)}"


THEMES: Final[Mapping[str, Callable[[random.Random], str]]] = {
    "algebra": algebra,
    "elsewhere": elsewhere,
    "expanded": expansions.expanded,
    "through": expansions.through,
    "structure": structure,
    "conditional": conditional,
    "nearly": nearly,
    "conjecture": conjectures.conjecture,
    "law": op_laws.law,
    "dropped": op_laws.dropped,
    "lanes": lanes,
    "alike": alike,
    "anything": anything,
    "ends": ends,
}
