"""The book's entries about rules: one for each rule as it is written, so that a `for` block has one for all that it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedFile, CheckedGroup, CheckedRule
from morok.dsl.format import format_rule
from morok.tools import describe
from morok.tools.book.rule_examples import Example, examples
from morok.tools.catalogue import Entry as Text
from morok.tools.catalogue import answers


@dataclass(frozen=True, slots=True)
class Entry:
    """A rule.

    verdicts  by the full names of the rules that it makes: one, or one for each op of its `for` block
    scope     what the proofs cover, each statement once
    texts     the texts' rules that it says
    """

    name: str
    text: str
    doc: str
    place: str
    ops: tuple[str, ...]
    verdicts: dict[str, str]
    scope: tuple[str, ...]
    premises: tuple[str, ...]
    lemmas: tuple[str, ...]
    stages: tuple[str, ...]
    texts: tuple[Text, ...]
    example: Example | None


@dataclass(frozen=True, slots=True)
class Section:
    """A group."""

    name: str
    doc: str
    tiers: tuple[str, ...]
    ends: tuple[S.Ends, ...]
    entries: tuple[Entry, ...]

    @property
    def count(self) -> int:
        return sum(len(e.verdicts) for e in self.entries)


@dataclass(frozen=True, slots=True)
class Chapter:
    """A file; `about` is its first comment, by paragraphs."""

    file: str
    about: tuple[str, ...]
    sections: tuple[Section, ...]


# name of a rule -> its verdict and what that covers
Verdicts = Callable[[CheckedRule], tuple[str, Sequence[str]]]


def chapter(file: str, source: str, checked: CheckedFile, verdict: Verdicts, texts: Sequence[Text], built_in: bool) -> Chapter:
    """The book's chapter about a file, `source` being its text."""
    written = {g.name: g for g in checked.syntax.groups}
    sections = [_section(file, g, written[g.name], verdict, texts, built_in) for g in checked.groups]
    return Chapter(file, _about(source), tuple(sections))


def _about(source: str) -> tuple[str, ...]:
    """The comment at the head of a file, by paragraphs."""
    paragraphs: list[list[str]] = [[]]
    for line in source.split("\n"):
        if not line.startswith("#"):
            break
        text = line.lstrip("#").strip()
        if text:
            paragraphs[-1].append(text)
        else:
            paragraphs.append([])
    return tuple(" ".join(p) for p in paragraphs if p)


def _section(
    file: str, group: CheckedGroup, written: S.Group, verdict: Verdicts, texts: Sequence[Text], built_in: bool
) -> Section:
    by_source: dict[tuple[int, str], list[CheckedRule]] = {}
    for rule in group.rules:
        by_source.setdefault((rule.line, rule.syntax.name), []).append(rule)
    shown = examples([rules[0] for rules in by_source.values()])
    entries = []
    for item in written.items:
        for said in item.rules if isinstance(item, S.Template) else (item,):
            made = by_source[(said.span.line, said.name)]
            entries.append(_entry(file, said, item, made, verdict, texts, built_in, shown.get(made[0].name)))
    tiers = tuple(describe.tiers(group.name)) if built_in else ()
    return Section(group.name, group.doc, tiers, written.ends, tuple(entries))


def _entry(
    file: str,
    rule: S.Rule,
    item: S.Rule | S.Template,
    made: Sequence[CheckedRule],
    verdict: Verdicts,
    texts: Sequence[Text],
    built_in: bool,
    example: Example | None,
) -> Entry:
    first = made[0]
    judged = {r.name: verdict(r) for r in made}
    ops = tuple(r.name.rpartition(".")[2] for r in made) if isinstance(item, S.Template) else ()
    name = first.name.rpartition(".")[0] if ops else first.name
    return Entry(
        name=name,
        text=format_rule(rule),
        doc=rule.doc,
        place=f"{file}:{rule.span.line}",
        ops=ops,
        verdicts={n: v for n, (v, _) in judged.items()},
        scope=tuple(dict.fromkeys(s for _, scope in judged.values() for s in scope)),
        premises=tuple(describe.premises(first)),
        lemmas=tuple(describe.lemmas(first)),
        stages=tuple(describe.stages(first.name.partition(".")[0])) if built_in else (),
        texts=tuple(t for t in texts if any(answers(n, r) for r in t.rules for n in judged)),
        example=example,
    )


__all__ = ["Chapter", "Entry", "Section", "Verdicts", "chapter"]
