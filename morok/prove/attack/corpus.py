"""The must-fail corpus: a rule file of findings, none of which may be usable again."""

from __future__ import annotations

from pathlib import Path

from morok import atomic
from morok.dsl.check import check_text
from morok.prove.attack.campaign import Report

HEAD = "# Rules that are false, and that `morok attack` once found usable: none of them may be.\n"


def keep(path: Path, report: Report) -> int:
    """Add the findings of a run to a rule file, those that it does not have, and return how many of them it has then. Rules over
    a dialect of their own, or with helpers, are left out: a file has one head.
    """
    text = path.read_text(encoding="utf-8") if path.is_file() else HEAD
    kept = 0
    for finding in report.findings:
        head, _, rest = finding.text.partition("group attack")
        if head.strip():
            continue
        rule = rest.partition("\n")[2].strip()
        if rule not in text:
            name = f"seed_{report.seed}_rule_{finding.number}".replace("-", "minus_")
            text += f'\ngroup {name} "{finding.theme}"\n\n{rule}\n'
        kept += 1
    check_text(text, str(path))
    atomic.write(path, text.encode())
    return kept
