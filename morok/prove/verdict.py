"""The verdict on a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from morok.dsl.extent import Extents
from morok.errors import (
    DialectError,
    HelperContractError,
    InternalProofError,
    ProofError,
    UndecidedRuleError,
    UnprovedRuleError,
    UntrustedHelperError,
    VacuousRuleError,
)
from morok.prove.page import USABLE, Record

if TYPE_CHECKING:
    from morok.prove.contract_state import Tested

REFUSED: Final = ("refuted", "inapplicable", "broken")
_PROVED: Final = USABLE | {"inapplicable"}  # that a rule can never fire is proved too


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one rule, as `morok prove` reports it.

    scope           what a proof covers: dtypes, encodings, bounds; of a rule that is no proof's, nothing
    counterexample  for `refuted`: {"dtype", "bindings", "lhs", "rhs", "confirmed"}
    obligations     (name, SMT-LIB) of what was proved, where asked for
    final           whether the verdict may be recorded: not where a wall limit, or a crash, was involved
    recorded_earlier  it comes from the ledger, and nothing was asked now
    digest          of the meaning that was judged, where that was already asked for
    questions       a digest of the obligations, where they were made
    extents         of everything that the proof enumerated the values that it tried
    contracts       whether its helpers keep theirs: "untested", "tested (n calls)", "false" (then the verdict is `broken`)
    column          where a rule that cannot be used begins in its line; 0 where nobody has looked
    """

    name: str
    file: str
    line: int
    verdict: str
    scope: tuple[str, ...] = ()
    seconds: float = 0.0
    helpers: tuple[str, ...] = ()
    counterexample: dict[str, Any] | None = None
    message: str = ""
    resources: int = 0
    solver: str = ""
    obligations: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    final: bool = True
    recorded_earlier: bool = False
    digest: str = ""
    questions: str = ""
    contracts: str = ""
    extents: Extents = ()
    column: int = 0

    def __post_init__(self) -> None:
        if self.verdict not in _PROVED:
            object.__setattr__(self, "scope", ())

    @property
    def code(self) -> str:
        """The error that a rule of this verdict is: `morok explain CODE` says more."""
        kinds: dict[str, type[ProofError]] = {
            "inapplicable": VacuousRuleError,
            "broken": HelperContractError if self.contracts.startswith("false") else DialectError,
            "unknown": UndecidedRuleError,
            "error": InternalProofError,
        }
        return UntrustedHelperError.code if self.untested else kinds.get(self.verdict, UnprovedRuleError).code

    @property
    def untested(self) -> bool:
        """True if it is usable but for contracts that nobody has tested."""
        return self.verdict in USABLE and self.contracts == "untested"

    @property
    def usable(self) -> bool:
        return self.verdict in USABLE and self.contracts != "untested"

    @property
    def shown(self) -> str:
        """The verdict in words, with what is missing to it."""
        return f"{self.verdict}, contracts: untested" if self.untested else self.verdict

    def with_contracts(self, tested: Tested | None) -> Verdict:
        """The same with what is known of the contracts that the proof relies on."""
        if not self.helpers:
            return self
        if tested is None:
            return replace(self, contracts="tested (CI)")
        false = tested.state == "false" and self.verdict in USABLE
        message = "\n".join(m for m in (self.message, tested.message) if m)
        return replace(self, contracts=str(tested), message=message, verdict="broken" if false else self.verdict)

    def record(self, digest: str, name: str) -> Record:
        """The record of it for the ledger, under a name without its pack."""
        return Record(
            name,
            digest,
            self.verdict,
            self.scope,
            self.solver,
            self.resources,
            self.helpers,
            self.message,
            self.questions,
            self.extents,
        )

    @staticmethod
    def recorded(record: Record, name: str, file: str, line: int) -> Verdict:
        """A verdict that was found earlier, on the rule that is called `name` now."""
        return Verdict(
            name,
            file,
            line,
            record.verdict,
            record.scope,
            0.0,
            record.helpers,
            None,
            record.message,
            record.resources,
            record.solver,
            recorded_earlier=True,
            digest=record.digest,
            questions=record.questions,
            extents=record.extents,
        )

    def json(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "name": self.name,
            "file": self.file,
            "line": self.line,
            "verdict": self.verdict,
            "scope": list(self.scope),
            "seconds": round(self.seconds, 4),
            "resources": self.resources,
            "helpers": list(self.helpers),
        }
        if not self.usable:
            out["code"] = self.code
        if self.column:
            out["column"] = self.column
        if self.extents:
            out["extents"] = [{"what": e.what, "of": e.of, "least": e.least, "most": e.most} for e in self.extents]
        if self.contracts:
            out["contracts"] = self.contracts
        if self.counterexample is not None:
            out["counterexample"] = self.counterexample
        if self.message:
            out["message"] = self.message
        return out


def exit_status(verdicts: Sequence[Verdict]) -> int:
    """0: every rule is usable; 1: some refuted, inapplicable or broken; 4: some ended in an internal error; 3: some unknown,
    or usable but for contracts that are untested.
    """
    found = {v.verdict for v in verdicts}
    if found & set(REFUSED):
        return 1
    if "error" in found:
        return 4
    return 3 if "unknown" in found or any(v.untested for v in verdicts) else 0
