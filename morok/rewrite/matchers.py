"""From a rule set to its compiled matcher: out of the cache on disk where its rules come from files that did not change."""

from __future__ import annotations

import hashlib
import json
import marshal
from collections.abc import Callable, Hashable
from types import CodeType
from typing import Any

from morok.dsl.compiled import Generated, link, to_code
from morok.rewrite import store
from morok.rewrite.files import dialect_digest, generator_digest
from morok.rewrite.ruleset import Matcher, RuleSet, serial_of


def matcher_for(rules: RuleSet, flags: frozenset[str], checked: bool) -> Matcher:
    """The matcher of those of `rules` that assume nothing beyond `flags`; `checked`: helper calls assert their contracts."""
    if checked:
        from morok.rewrite.contracts import asserting

        generated = _generate(rules, flags)
        return _linked(rules, generated, to_code(generated), (flags, checked), asserting(rules.rules))
    key = _key(rules, flags)
    kept = None if key is None else store.load(key)
    if kept is not None:
        size = int.from_bytes(kept[:8], "little")
        raw = json.loads(kept[8 : 8 + size])
        generated = Generated(raw["source"], tuple(raw["names"]), raw["helpers"])
        code: CodeType = marshal.loads(kept[8 + size :])
    else:
        generated = _generate(rules, flags)
        code = to_code(generated)
        if key is not None:
            text = json.dumps({"source": generated.source, "names": generated.names, "helpers": dict(generated.helpers)}).encode()
            store.save(key, len(text).to_bytes(8, "little") + text + marshal.dumps(code))
    return _linked(rules, generated, code, (flags, checked), None)


def _generate(rules: RuleSet, flags: frozenset[str]) -> Generated:
    from morok.dsl.compile import compile_rules

    return compile_rules([r for r in rules.rules if flags.issuperset(r.syntax.assuming)], rules.dialect)


def _linked(
    rules: RuleSet, generated: Generated, code: CodeType, mode: Hashable, wrap: Callable[[str, Any], Any] | None
) -> Matcher:
    found = link(code, generated, rules.dialect, wrap)
    table = {rules.dialect.ops[op].key: f for op, f in found.items() if op}
    return Matcher(table, found.get(""), generated.names, generated.source, serial_of((rules.identity, mode)))


def _key(rules: RuleSet, flags: frozenset[str]) -> str | None:
    """What the generated text depends on; None where some rules come from no file."""
    parts = [p.cache for p in rules.parts]
    if not all(parts):
        return None
    said = "\n".join(["matcher", generator_digest(), dialect_digest(rules.dialect), " ".join(sorted(flags)), *parts])
    return hashlib.sha256(said.encode()).hexdigest()
