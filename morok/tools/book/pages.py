"""The pages of the book: the rules, with a search field, and the catalogue of reference texts. Without network or dates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final

from morok.tools.book.entries import Chapter, Entry, Section
from morok.tools.catalogue import Entry as Text

_ASSETS: Final = Path(__file__).with_name("assets")
ASSETS: Final = ("book.css", "book.js")

_TOKEN: Final = re.compile(
    r'(?P<doc>"(?:[^"\\]|\\.)*")|(?P<word>\b(?:for|in|if|let|and|or|not|assuming|within|example|true|false|None|Some)\b)'
    r"|(?P<const>@\w+(?:\(\w+\))?)|(?P<arrow>~>|=>)|(?P<op>\b[A-Z]\w*)|(?P<number>(?<![\w.])-?\d[\w.]*)|(?P<name>^\w+(?=:))",
    re.MULTILINE,
)


def coloured(text: str) -> str:
    """Text of a rule or expression as HTML, with tokens in classes for colours."""
    out: list[str] = []
    at = 0
    for m in _TOKEN.finditer(text):
        out.append(escape(text[at : m.start()]))
        out.append(f'<span class="{m.lastgroup}">{escape(m.group())}</span>')
        at = m.end()
    return "".join((*out, escape(text[at:])))


def _page(title: str, body: str, navigation: str = "") -> str:
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="stylesheet" href="book.css">
</head>
<body>
<nav>{navigation}</nav>
<main>
{body}
</main>
<script src="book.js"></script>
</body>
</html>
"""


def _id(name: str) -> str:
    return escape(name, quote=True)


def _badge(verdict: str) -> str:
    return f'<span class="verdict {escape(verdict)}">{escape(verdict)}</span>'


def _list(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"<dt>{title}</dt>"
        yield from (f"<dd>{item}</dd>" for item in items)


def _texts(entry: Entry) -> Iterator[str]:
    for cited in entry.texts:
        reason = f" <span class=quiet>{escape(cited.reason)}</span>" if cited.reason else ""
        link = f'<a href="texts.html#{_id(cited.id)}">{escape(cited.id)}</a>'
        yield f"{link} {escape(cited.section)}, {escape(cited.decision)}{reason}"


def _card(entry: Entry) -> str:
    verdicts = list(dict.fromkeys(entry.verdicts.values()))
    made = f" <span class=quiet>{len(entry.verdicts)} rules</span>" if len(entry.verdicts) > 1 else ""
    first, *others = entry.verdicts
    anchors = "".join(f'<span id="{_id(other)}"></span>' for other in others)
    head = f'<h3><a href="#{_id(first)}">{escape(entry.name)}</a>{made}{"".join(map(_badge, verdicts))}</h3>'
    example = ""
    if entry.example is not None:
        before, after = coloured(entry.example.before), coloured(entry.example.after)
        arrow = '<span class=arrow aria-label="becomes">&#8594;</span>'
        example = f"<div class=example><code>{before}</code>{arrow}<code>{after}</code></div>"
    more = "".join(
        (
            *_list("holds at", [escape(s) for s in entry.scope]),
            *_list("the proof takes for granted", [f"<code>{coloured(p)}</code>" for p in entry.premises]),
            *_list("and proves besides", [escape(p) for p in entry.lemmas]),
            *_list("makes a rule for each of", [escape(", ".join(entry.ops))] if entry.ops else []),
            *_list("from the texts", list(_texts(entry))),
            *_list("runs in stage", [escape(s) for s in entry.stages]),
            *_list("written in", [escape(entry.place)]),
        )
    )
    doc = f"<p>{escape(entry.doc)}</p>" if entry.doc else ""
    return (
        f'<article id="{_id(first)}" data-verdict="{escape(" ".join(verdicts))}">{anchors}{head}{doc}'
        f"<pre>{coloured(entry.text)}</pre>{example}<details><summary>proof and use</summary><dl>{more}</dl></details></article>"
    )


def _section(section: Section) -> str:
    tiers = "".join(f"<span class=tier>{escape(t)}</span>" for t in section.tiers)
    cards = "\n".join(map(_card, section.entries))
    doc = f"<p>{escape(section.doc)}</p>" if section.doc else ""
    ends = "".join(f"<dd><b>{escape(', '.join(e.names))}</b> {escape(e.reason)}</dd>" for e in section.ends)
    ends = f"<details><summary>why these rules end</summary><dl>{ends}</dl></details>" if ends else ""
    return f'<section id="group-{_id(section.name)}"><h2>{escape(section.name)}{tiers}</h2>{doc}{ends}\n{cards}\n</section>'


def _navigation(chapters: Sequence[Chapter], texts: bool) -> str:
    out = ['<a class=home href="index.html">Book of rules</a>']
    out.append('<input id=search type=search placeholder="search rules" aria-label="search rules" autocomplete=off>')
    out.append('<div id=found class=quiet aria-live="polite"></div>')
    if texts:
        out.append('<a href="texts.html">what became of the texts</a>')
    for chapter in chapters:
        links = "".join(
            f'<a href="index.html#group-{_id(s.name)}">{escape(s.name)}<span class=quiet>{s.count}</span></a>'
            for s in chapter.sections
        )
        out.append(f"<h4>{escape(chapter.file)}</h4>{links}")
    return "".join(out)


def index(title: str, chapters: Sequence[Chapter], texts: bool) -> str:
    """The HTML page of rules."""
    counts: dict[str, int] = {}
    for entry in (e for c in chapters for s in c.sections for e in s.entries):
        for verdict in entry.verdicts.values():
            counts[verdict] = counts.get(verdict, 0) + 1
    total = sum(counts.values())
    badges = "".join(
        f"<button data-only={escape(v)} class='verdict {escape(v)}'>{n} {escape(v)}</button>"
        for v, n in sorted(counts.items())
    )
    head = f"""<header><h1>{escape(title)}</h1>
<p>{total} rules. Each was handed to a solver, at every dtype that it admits, before it may run: is there a graph on which its
two sides differ? The verdict says what came of it. An example under each rule shows it firing.</p>
<p class=counts>{badges}</p>
<dl class=verdicts>
<dt>{_badge("proved")}</dt><dd>no counterexample exists, at every dtype and width listed</dd>
<dt>{_badge("bounded")}</dt><dd>none exists up to the bound stated: lanes, lengths of sequences, rank</dd>
<dt>{_badge("defined")}</dt><dd>the rule is the meaning of an op; its evaluator is compared with the solver instead</dd>
<dt>{_badge("approximate")}</dt><dd>equal up to an error that was measured</dd>
</dl></header>"""
    files = "\n".join(
        f"<h1 class=file>{escape(c.file)}</h1>{''.join(f'<p>{escape(p)}</p>' for p in c.about)}\n"
        + "\n".join(map(_section, c.sections))
        for c in chapters
    )
    return _page(title, f"{head}\n{files}", _navigation(chapters, texts))


def texts(rows: Sequence[Text], chapters: Sequence[Chapter]) -> str:
    """The HTML page of the reference texts' rules, with the decision on each."""
    names = {s.name: f"group-{s.name}" for c in chapters for s in c.sections}
    for entry in (e for c in chapters for s in c.sections for e in s.entries):
        for name in (entry.name, *entry.verdicts):
            names.setdefault(name, next(iter(entry.verdicts)))
    out = ["<header><h1>What became of the texts' rules</h1>"]
    counts = {d: sum(r.decision == d for r in rows) for d in dict.fromkeys(r.decision for r in rows)}
    out.append(
        f"<p>{len(rows)} rules: {escape(', '.join(f'{n} {d}' for d, n in sorted(counts.items())))}.</p></header>"
    )
    section = ""
    for row in rows:
        if row.section != section:
            out.append(f"{'</table>' if section else ''}<h2>{escape(row.section)}</h2><table>")
            section = row.section
        links = ", ".join(f'<a href="index.html#{_id(names.get(n, n))}">{escape(n)}</a>' for n in row.rules)
        code = f"<code>{escape(row.code)}</code>" if row.code else ""
        out.append(
            f'<tr id="{_id(row.id)}"><th>{escape(row.id)}</th><td><code>{coloured(row.text)}</code></td>'
            f'<td><span class="decision {escape(row.decision)}">{escape(row.decision)}</span></td><td>{links}{code}</td>'
            f"<td>{escape(row.reason)}</td></tr>"
        )
    out.append("</table>")
    return _page("What became of the texts' rules", "\n".join(out), _navigation(chapters, True))


def asset(name: str) -> str:
    """The text of a style sheet or script, which is copied to the folder unchanged."""
    return (_ASSETS / name).read_text(encoding="utf-8")
