"""The generated parts of the guide (docs/*.md), which keep its tables and traces in agreement with the code.

A part is delimited by `<!-- part NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from morok import atomic
from morok.codegen.llvm import render
from morok.codegen.machines import Machine, llvm_target
from morok.errors import UsageError
from morok.ir.op import OpDef, Operand
from morok.ir.ops import TABLE
from morok.passes.pipeline import STAGES, lower, section
from morok.passes.rangeify import PASSES
from morok.rewrite import tiers
from morok.tools.book.op_meanings import KINDS, MEANINGS

_PART: Final = re.compile(r"(<!-- part (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def refreshed(text: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """The text of a page with its parts generated anew. UsageError for an unknown part."""

    def made(found: re.Match[str]) -> str:
        name = found[2]
        if name not in parts:
            raise UsageError(f"there is no generated part {name!r}", expected=", ".join(parts))
        return f"{found[1]}\n{parts[name]().strip()}\n\n{found[4]}"

    return _PART.sub(made, text)


def refresh(folder: Path) -> list[Path] | None:
    """The pages of a folder that changed when their parts were generated anew and written. None if no page has a part."""
    texts = {page: page.read_text(encoding="utf-8") for page in sorted(folder.glob("*.md"))}
    if not any(map(_PART.search, texts.values())):
        return None
    parts = all_parts(folder.resolve().parent)
    changed: list[Path] = []
    for page, before in texts.items():
        after = refreshed(before, parts)
        if after != before:
            atomic.rewrite(page, after)
            changed.append(page)
    return changed


def all_parts(root: Path) -> dict[str, Callable[[], str]]:
    """The generator of each part by name; `root` is the folder of the checkout, with `examples`."""
    programs = {f"example:{p.name}": partial(_program, p) for p in sorted((root / "examples").glob("*.py"))}
    return {
        "stages": stages,
        "ops": ops,
        "passes": passes,
        "trace": partial(trace, root / "examples" / "add.py"),
        **programs,
    }


def _program(path: Path) -> str:
    return f"```python\n{path.read_text(encoding='utf-8').strip()}\n```"


def stages() -> str:
    """The table of the 22 stages; whole tiers of groups are named by the tier."""
    rows = ["| stage | name | rule groups | algorithm |", "|---|---|---|---|"]
    for s in STAGES:
        groups = _groups(s.applied) or "the target's own" * bool(s.adds) or "-"
        algorithm = f"`{s.algorithm_name}`" if s.algorithm_name else "-"
        rows.append(f"| {s.number} | {s.name} | {groups} | {algorithm} |")
    return "\n".join(rows)


def _groups(names: tuple[str, ...]) -> str:
    for tier in ("SYM", "SYMBOLIC", "SYMBOLIC_SIMPLE"):
        members = getattr(tiers, tier)
        for at in range(len(names) - len(members) + 1):
            if names[at : at + len(members)] == members:
                shown = f"the tier {tier.lower()} ({len(members)} groups)"
                return ", ".join(filter(None, (_groups(names[:at]), shown, _groups(names[at + len(members) :]))))
    return ", ".join(f"`{g}`" for g in names)


def ops() -> str:
    """The tables of all ops: operands and fields from the op table, and the meaning."""
    out: list[str] = []
    for kind, members in KINDS.items():
        out += [f"## {kind}", "", "| op | operands | fields | meaning |", "|---|---|---|---|"]
        out += [_row(TABLE[op]) for op in members]
        out.append("")
    return "\n".join(out)


def _row(entry: OpDef) -> str:
    operands = ", ".join(map(_operand, entry.operands)) or "-"
    fields = ", ".join(entry.fields) or "-"
    return f"| `{entry.name}` | {operands} | {fields} | {MEANINGS[entry.op]} |"


def _operand(o: Operand) -> str:
    return o.name + (".." if o.many else "?" if o.optional else "")


def passes() -> str:
    """The table of the eight rangeify passes, in order."""
    rows = ["| pass | name | what it does |", "|---|---|---|"]
    for n, (name, run) in enumerate(PASSES, 1):
        rows.append(f"| {n} | {name} | {(run.__doc__ or '').strip()} |")
    return "\n".join(rows)


def trace(path: Path) -> str:
    """The 22 stages of lowering a program's kernel, for a fixed processor with AVX2, independent of this machine."""
    (item,) = runpy.run_path(str(path))["program"]().schedule()
    target = llvm_target(Machine("haswell", "+avx,+avx2,+fma", "x86_64-unknown-linux-gnu"))
    texts = [f"=== {item.ast.arg.name}: the kernel\n{item.ast.tree()}"]
    instructions = lower(
        item.ast, target, lambda n, name, before, after: texts.append(section(item.ast, STAGES[n - 1], before, after))
    )
    code = render(instructions, item.ast.arg.name, target).text
    return f"```text\n{chr(10).join(texts)}\n```\n\nAnd the code that LLVM is given:\n\n```llvm\n{code.strip()}\n```"
