"""A runner of the `example` clauses of rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from morok.dsl import syntax as S
from morok.dsl.checked import CheckedFile, CheckedRule
from morok.errors import ExampleError, MorokError, Place, UntrustedHelperError
from morok.rewrite.ruleset import RuleSet


@dataclass(slots=True)
class Examples:
    """The results of running the examples of a file: how many ran, and an error for each wrong one."""

    count: int = 0
    errors: list[MorokError] = field(default_factory=list)


def run_examples(checked: CheckedFile) -> Examples:
    """Results of all examples of a file. The rule, applied at the root of the left side, must give the right side."""
    outcome = Examples()
    rules = [r for r in checked.rules() if r.syntax.examples]
    if not rules:
        return outcome
    good: set[tuple[S.Example, int]] = set()
    wrong: dict[tuple[S.Example, int], ExampleError] = {}
    for rule in rules:
        only = RuleSet.of([rule], unproved=True)
        for example in rule.syntax.examples:
            key = (example, example.span.line)
            problem = _run_example(rule, example, only)
            if problem is None:
                good.add(key)
            else:
                wrong.setdefault(key, problem)
    # a template makes a rule for each op of a list; its example is right if it is right for one of them
    outcome.count = len(good | wrong.keys())
    outcome.errors += [e for key, e in wrong.items() if key not in good]
    return outcome


def _run_example(rule: CheckedRule, example: S.Example, rules: RuleSet) -> ExampleError | None:
    place = Place(rule.file, example.span.line, example.span.column)
    dialect: Any = rule.dialect
    if not hasattr(dialect, "read"):
        what = f"an example of {rule.name} cannot be read: dialect {dialect.name} has no method read(text)"
        return ExampleError(what, place=place, hint="`morok.dialect` says what a dialect may have")
    try:
        source, wanted = dialect.read(example.source), dialect.read(example.result)
    except MorokError as e:
        return ExampleError(f"an example of {rule.name} cannot be read: {e.message}", place=place, hint=e.hint)
    if rule.context is not None and rule.externs:
        hint = "leave it out; `morok docs` makes examples of such rules too"
        return ExampleError(
            f"an example of {rule.name} cannot be run: its helpers take a context", place=place, hint=hint
        )
    try:
        found = rules.rewrite_node(source, None)
    except UntrustedHelperError as e:
        what = f"an example of {rule.name} cannot be run: {e.message}"
        return ExampleError(what, place=place, hint="`--trust-helpers` runs it")
    if found is None:
        return ExampleError(
            f"{rule.name} does not apply to its example",
            place=place,
            excerpt=f"  {example.source}",
            expected=example.result,
        )
    result, show = found[0], getattr(dialect, "show", repr)
    if dialect.same(result, wanted):
        return None
    return ExampleError(
        f"{rule.name} gives {show(result)}", place=place, excerpt=f"  {example.source}", expected=example.result
    )
