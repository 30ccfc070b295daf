"""Rule sets: ordered rules of one dialect, compiled into a matcher on first use."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from morok import config
from morok.arguments import flag, instance, mistyped, several, text
from morok.caller import caller
from morok.dialect import Dialect, Node
from morok.dsl.extent import Extents
from morok.errors import IRTypeError, UnknownRuleError, UsageError
from morok.interrupts import check
from morok.locks import RULES
from morok.names import did_you_mean, nearest
from morok.rewrite import matchers
from morok.rewrite.matcher import Matcher, first_match, serial_of
from morok.rewrite.parts import Listed, Part, Standing, several_dialects
from morok.rewrite.tiers import FIRES

if TYPE_CHECKING:
    from morok.dsl.checked import CheckedRule


def check_node(dialect: Dialect, node: Any) -> None:
    """IRTypeError for anything but a node of the dialect, if the dialect declares the class of its nodes."""
    kind: type | None = getattr(dialect, "node", None)
    if kind is not None and not isinstance(node, kind):
        hint = "pass the graph in its attribute `uop`" if hasattr(node, "uop") else ""
        what = f"rules cannot rewrite a {type(node).__name__}"
        raise IRTypeError(what, place=caller(), expected=f"a {kind.__name__}", hint=hint)


def check_context(rules: RuleSet, context: Any) -> None:
    """UsageError if helpers of these rules take a context and `context` is None."""
    if context is not None or not rules.has_context:
        return
    for rule in rules.rules:
        if rule.context is not None and rule.externs:
            what = f"{rule.name} needs a context, and none was given"
            hint = f"pass rewrite(.., context=..): the last argument of its helpers ({', '.join(sorted(rule.externs))})"
            raise UsageError(what, place=caller(), expected=f"a {rule.context}", hint=hint)


LARGE: Final = 100  # rules. A set of this size shares its matcher with sums of sets, because making one takes a second


def _has_name(full: str, name: str) -> bool:
    return full == name or full.partition(".")[2] == name


class RuleSet:
    """Rules in priority order: the first rule that applies to a node fires. `a + b` puts the rules of `a` before those of `b`.

    blocks    the same rules as smaller sets, if some of these are large, or were given so; each has a matcher, shared with other
              rule sets
    whole     the rules that match an AC chain as a whole, before its nodes are finished (morok.rewrite.ac_chains)
    fires     the operand positions in which the rules fire; for a sum of sets, the positions that they have in common
    unproved  True if some rules are of a set made with unproved=True: see `of`
    programs  the engine's programs for these rules, by (flags, checked, positions)
    """

    def __init__(
        self,
        parts: Sequence[Part],
        blocks: Sequence[RuleSet] = (),
        whole: RuleSet | None = None,
        fires: frozenset[str] = FIRES,
    ) -> None:
        if not parts:
            raise UsageError("a set of no rules", place=caller(), expected="at least one rule")
        self.parts = tuple(parts)
        self.blocks = tuple(blocks)
        self.whole = whole
        self.fires = fires
        self.dialect = parts[0].dialect
        for p in parts:
            if p.dialect is not self.dialect:
                raise several_dialects(self.dialect, p.dialect)
        self.has_context = any(p.has_context for p in parts)
        inner = (*self.blocks, *(() if whole is None else (whole,)))
        self.unproved = any(p.standing is Standing.UNPROVED for p in parts) or any(rules.unproved for rules in inner)
        self.identity: Hashable = tuple(p.identity for p in parts)
        self._matchers: dict[tuple[frozenset[str], bool], Matcher] = {}
        self.programs: dict[Hashable, Any] = {}
        self._mentioned: dict[str, bool] = {}

    @staticmethod
    def of(rules: Sequence[CheckedRule], unproved: bool = False) -> RuleSet:
        """A rule set of checked rules, in this order. On first use it raises UnprovedRuleError if the ledger has no usable
        verdict on one of them (morok.load_rules proves on the spot).

        unproved  True for a set that never asks the ledger, for tests of rules that may be false. No pipeline accepts it
        """
        given = several(rules, "a rule set", "checked rules")
        for r in given:
            if not hasattr(r, "syntax"):  # the class of checked rules is not loaded for built-in rules
                raise mistyped(r, "a rule of a rule set", "a checked rule")
        return RuleSet((Listed(given, Standing.UNPROVED if flag(unproved, "unproved") else Standing.ASK),))

    @property
    def names(self) -> tuple[str, ...]:
        """The rules' full names, in priority order."""
        return tuple(n for p in self.parts for n in p.names)

    @property
    def rules(self) -> tuple[CheckedRule, ...]:
        """The checked rules, in priority order."""
        return tuple(r for p in self.parts for r in p.rules())

    def mentions(self, op: str) -> bool:
        """True if one of the rules names this op."""
        found = self._mentioned.get(text(op, "the name of an op"))
        if found is None:
            found = self._mentioned[op] = any(p.mentions(op) for p in self.parts)
        return found

    def __add__(self, other: RuleSet) -> RuleSet:
        instance(other, RuleSet, "the right operand of + of rules", "rules, as load_rules(..) returns them")
        blocks = (*(self.blocks or (self,)), *(other.blocks or (other,)))
        whole = other.whole if self.whole is None else self.whole
        shared = self.blocks or other.blocks or any(len(b) >= LARGE for b in blocks)
        return RuleSet((*self.parts, *other.parts), blocks if shared else (), whole, self.fires & other.fires)

    def __copy__(self) -> RuleSet:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> RuleSet:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        raise UsageError(
            "rules cannot be pickled",
            place=caller(),
            expected="what each process loads for itself: its gate admits them",
            hint="pass the path, and call load_rules() there",
        )

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.names

    def __getitem__(self, name: str) -> SingleRule:
        """The rule of this name, with or without the prefix of its pack. UnknownRuleError if there is none, or several."""
        text(name, "the name of a rule", UnknownRuleError)
        mine = [p for p in self.parts if any(_has_name(n, name) for n in p.names)]
        found = [(r, p, i) for p in mine for i, r in enumerate(p.rules()) if _has_name(r.name, name)]
        exact = [(r, p, i) for r, p, i in found if r.name == name] or found
        if len(exact) != 1:
            what = f"{len(found)} rules have the name" if found else "there is no rule"
            close = [r.name for r, *_ in found] or nearest(str(name), self.names, 3)
            hint = did_you_mean(close, "the set's names are in `rules.names`")
            raise UnknownRuleError(f"{what} {name!r}", place=caller(), expected="group.rule", hint=hint)
        rule, part, place = exact[0]
        return SingleRule(rule, part.standing, part.limits.get(place), part.meant)

    def __repr__(self) -> str:
        return f"<RuleSet of {len(self)} rules>"

    @property
    def matcher(self) -> Matcher:
        """The matcher of the rules that assume no more than MOROK_FAST_MATH allows. Under MOROK_CHECK=1 it checks the contract of
        each helper call.
        """
        flags, checked, _ = config.REWRITING.values
        return self.matcher_under(flags, checked)

    def make_matchers(self) -> None:
        """Make all matchers that rewriting with these rules needs: that of the set, and that of its rules for whole AC chains."""
        _ = self.matcher
        if self.whole is not None:
            _ = self.whole.matcher

    def matcher_under(self, flags: frozenset[str], checked: bool) -> Matcher:
        """The matcher under these values of MOROK_FAST_MATH and MOROK_CHECK."""
        known = flags.__class__ is frozenset and checked.__class__ is bool
        found = self._matchers.get((flags, checked)) if known else None
        if found is None:
            flags, checked = config.liberties(flags), flag(checked, "whether helpers' contracts are asserted")
            check()
            with RULES:
                found = self._matchers.get((flags, checked))
                if found is None:
                    found = self._matchers[flags, checked] = self._make_matcher(flags, checked)
        return found

    def _make_matcher(self, flags: frozenset[str], checked: bool) -> Matcher:
        if self.blocks:
            return first_match(
                [b.matcher_under(flags, checked) for b in self.blocks], serial_of((self.identity, flags, checked))
            )
        return matchers.matcher_for(self, flags, checked)

    @property
    def code(self) -> str:
        """The generated Python text of the matcher."""
        return self.matcher.source()

    def tried(self, node: Node, context: Any = None) -> list[str]:
        """The names of the rules that are tried on `node` until one fires: its op and its operands' ops do not exclude them."""
        check_node(self.dialect, node)
        return matchers.tried(self, node, context)

    def rewrite_node(self, node: Node, context: Any = None) -> tuple[Node, str] | None:
        """(the result of the first rule that applies at the root of `node`, the rule's name); None if none applies."""
        check_node(self.dialect, node)
        matcher = self.matcher
        match = matcher.table.get(self.dialect.opkey(node), matcher.default)
        if match is None:
            return None
        maker = getattr(self.dialect, "maker", None)
        origin = None if maker is None else maker.origin
        try:
            hit = match(node, context)
        finally:
            if maker is not None:
                maker.origin = origin
        return None if hit is None else (hit[0], matcher.names[hit[1]])


class SingleRule:
    """One rule of a set, to be inspected or applied alone."""

    def __init__(
        self, rule: CheckedRule, standing: Standing = Standing.ASK, limits: Extents | None = None, meant: str = ""
    ) -> None:
        self.rule = rule
        self._set = RuleSet((Listed((rule,), standing, {} if limits is None else {rule.name: limits}, meant),))

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def doc(self) -> str:
        return self.rule.syntax.doc

    @property
    def code(self) -> str:
        """The generated Python text of the matcher of this rule alone."""
        return self._set.code

    def apply(self, node: Node, context: Any = None) -> Node | None:
        """The result of the rule at the root of `node`; None if it does not apply."""
        check_context(self._set, context)
        hit = self._set.rewrite_node(node, context)
        return None if hit is None else hit[0]

    def __repr__(self) -> str:
        return f"<rule {self.name}>"
