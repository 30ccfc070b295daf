"""The rules of files that are parsed to be proved, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence

from morok.dsl import syntax as S
from morok.dsl.check import partly_checked
from morok.dsl.checked import CheckedRule
from morok.dsl.file_bytes import decode
from morok.dsl.parse import MAX_ERRORS, recover
from morok.errors import DialectError, MorokError, RuleError
from morok.prove.verdict import Verdict
from morok.rewrite.files import RuleFile


def rules_of(file: RuleFile, partly: bool) -> tuple[list[CheckedRule], list[MorokError]]:
    """The rules of a file, and its mistakes; unless `partly`, these are raised, but for those of its dialect."""
    try:
        _ = file.index  # kept, so that nothing is parsed the next time
        return list(file.checked.rules()), []
    except RuleError as refused:
        if not partly and not all(isinstance(e, DialectError) for e in refused.errors):
            raise
    try:
        checked, errors = partly_checked(decode(file.content, str(file.path)), str(file.path), pack=file.pack)
    except RuleError as refused:
        checked, errors = None, list(refused.errors)
    return ([] if checked is None else list(checked.rules())), errors[:MAX_ERRORS]


def misdeclared(file: RuleFile, wrong: Sequence[MorokError]) -> list[Verdict]:
    """The verdicts on the rules of a file that use what its dialect declares wrongly."""
    found = []
    for g in recover(decode(file.content, str(file.path)), str(file.path)).file.groups:
        for rule in (r for item in g.items for r in (item.rules if isinstance(item, S.Template) else (item,))):
            first, last = rule.span.line, rule.span.end_line
            mine = [e for e in wrong if e.place is None or e.place.line == 1 or first <= e.place.line <= last]
            if mine:
                name = ".".join(filter(None, (file.pack, g.name, rule.name)))
                message = "\n".join(dict.fromkeys(f"{e.code}: {e.message}" for e in mine))
                column = rule.span.column
                found.append(
                    Verdict(name, str(file.path), first, "broken", message=message, final=False, column=column)
                )
    return found
