"""Every error for users, with its code, the place in the program, the expected value, and a hint.

Each is also an error of the class that NumPy and the standard library raise for the same mistake: `except ValueError` catches
shapes that do not fit, `except IndexError` an index outside of its axis, `except TypeError` a wrong dtype.

Codes are grouped: MRK1xx rule files, MRK2xx proofs, MRK3xx rewriting, MRK4xx graphs, MRK5xx tensors, MRK6xx compilation
and devices, MRK9xx the command line. `morok explain CODE` prints the class's docstring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a text file; lines and columns count from 1."""

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class MorokError(Exception):
    """The base class of all errors that Morok raises on purpose."""

    code: ClassVar[str] = "MRK000"

    def __init__(
        self, message: str, *, place: Place | None = None, excerpt: str = "", expected: str = "", hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.excerpt = excerpt
        self.expected = expected
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"{self.place}: {self.code}: {self.message}" if self.place else f"{self.code}: {self.message}"]
        if self.excerpt:
            lines.append(self.excerpt)
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def json(self) -> dict[str, object]:
        """The error as a dict for JSON."""
        place = self.place
        return {
            "code": self.code,
            "file": place.file if place else "",
            "line": place.line if place else 0,
            "column": place.column if place else 0,
            "message": self.message,
            "expected": self.expected,
            "hint": self.hint,
        }


# Rule files


class RuleError(MorokError, ValueError):
    """A rule file cannot be used; `errors` holds every mistake found in it."""

    code = "MRK100"

    def __init__(self, message: str, *, errors: tuple[MorokError, ...] = (), **where: Any) -> None:
        super().__init__(message, **where)
        self.errors = errors or (self,)

    def __str__(self) -> str:
        if self.errors == (self,):
            return super().__str__()
        return "\n\n".join(str(e) for e in self.errors)


class RuleSyntaxError(RuleError):
    """The text of a rule file does not follow the grammar."""

    code = "MRK101"


class RuleTypeError(RuleError):
    """No choice of dtypes is valid for a rule's pattern, clauses and target together."""

    code = "MRK102"


class UnknownNameError(RuleError):
    """A rule mentions an op, dtype, field, variable or helper that does not exist."""

    code = "MRK103"


class RuleLimitError(RuleError):
    """A rule file is larger, or nested deeper, than Morok accepts."""

    code = "MRK104"


class RuleEncodingError(RuleError):
    """A rule file is not UTF-8 text, or holds a NUL byte."""

    code = "MRK105"


class DuplicateRuleError(RuleError):
    """Two rules of one group, or two groups, have the same name."""

    code = "MRK106"


class ExampleError(RuleError):
    """An `example` clause does not produce what it states."""

    code = "MRK107"


# Findings of `morok check --strict`


class LintError(MorokError, ValueError):
    """The base of findings about rules that are valid, but probably unintended."""

    code = "MRK110"


class UnusedNameError(LintError):
    """A rule binds a name and never uses it."""

    code = "MRK111"


class MissingDocError(LintError):
    """A rule of several lines has no doc string."""

    code = "MRK112"


class ShadowedRuleError(LintError):
    """A rule can never apply: an earlier rule of its group applies wherever it would."""

    code = "MRK113"


class IdleRuleError(LintError):
    """A rule's target is its pattern."""

    code = "MRK114"


class SelfMatchingRuleError(LintError):
    """A rule matches its own target, and its guards hold there too, so that it applies endlessly."""

    code = "MRK115"


class IdleGuardError(LintError):
    """A part of a guard always holds, or never, if the pattern has a value and the earlier guards hold."""

    code = "MRK116"


class EndlessGroupError(LintError):
    """No measure shows that rewriting with a group's rules terminates, and its `@ends` gives no reason."""

    code = "MRK117"


# Proofs


class ProofError(MorokError, ValueError):
    """The base of errors about proofs."""

    code = "MRK200"


class UnprovedRuleError(ProofError):
    """A rule has no usable verdict for exactly its current text and the current semantics."""

    code = "MRK201"


class VacuousRuleError(UnprovedRuleError):
    """A rule's pattern and guards can never hold together."""

    code = "MRK202"


class LedgerError(ProofError):
    """A proof ledger cannot be read, or disagrees with the rules it is about."""

    code = "MRK203"


class HelperContractError(ProofError):
    """A helper broke its contract: its result does not satisfy its `ensures` clause."""

    code = "MRK204"


class UndecidedRuleError(UnprovedRuleError):
    """No verdict was reached: the solver gave up within its budget, a limit of time ended the search, no encoding has a meaning
    for the rule, or (`--frozen`) the ledger has no record of it. A larger `--budget` may decide it.
    """

    code = "MRK209"


class InternalProofError(UnprovedRuleError):
    """Judging a rule ended in an internal error, or ended its process: a mistake in the prover, or in a dialect's own code."""

    code = "MRK211"


class UntrustedHelperError(UnprovedRuleError):
    """Rules call Python functions of a module that is not trusted, and therefore not imported. `--trust-helpers`, or
    `load_rules(.., trust_helpers=True)`, trusts it.
    """

    code = "MRK208"


class DialectError(UnprovedRuleError, RuleError):
    """A dialect contradicts itself: an op's evaluator differs from its solver semantics, a letter has no domain, two ops have one
    key. The message names the op and the field; `morok.dialect.verify` lists all mistakes. Rules that use them are not proved.
    """

    code = "MRK210"

    def __init__(self, message: str, *, op: str = "", field: str = "", **where: Any) -> None:
        super().__init__(message, **where)
        self.op = op
        self.field = field


# Rewriting


class RewriteLimitError(MorokError, RuntimeError):
    """Rewriting did not reach a fixpoint within its limits; the message names the rules that cycle."""

    code = "MRK301"


class UnknownRuleError(MorokError, KeyError):
    """A rule set has no rule, or several rules, of that name."""

    code = "MRK302"


class UnknownDialectError(MorokError, KeyError):
    """No dialect of that name was registered."""

    code = "MRK303"


class FalseFiringError(MorokError, RuntimeError):
    """Not raised any more: a rule fired at a size outside the scope of its proof. Rules decline there."""

    code = "MRK304"


# Graphs


class IRError(MorokError, ValueError):
    """The base of errors about graphs."""

    code = "MRK400"


class IRTypeError(IRError, TypeError):
    """An op was given invalid operands."""

    code = "MRK401"


class ParseError(IRError):
    """Text is not an expression."""

    code = "MRK402"


class VerifyError(IRError):
    """A graph contains a node that must not exist after a stage."""

    code = "MRK403"


class UndefinedError(IRError):
    """The interpreter met an undefined operation: a division by zero, an access outside a buffer."""

    code = "MRK404"


class FieldError(IRError, AttributeError):
    """An op has no field of that name."""

    code = "MRK405"


class StepLimitError(MorokError, RuntimeError):
    """A run of the interpreter would exceed its limit of steps."""

    code = "MRK406"


# Tensors


class TensorError(MorokError):
    """The base of errors about tensors."""

    code = "MRK500"


class ShapeError(TensorError, ValueError):
    """Shapes do not fit together; the message shows both."""

    code = "MRK501"


class DTypeError(TensorError, TypeError):
    """A dtype does not fit an operation."""

    code = "MRK502"


class BindError(TensorError, ValueError):
    """A variable was bound to a value outside its bounds, or not bound at all."""

    code = "MRK503"


class StateError(TensorError, KeyError, ValueError):
    """A state dict does not fit a layer: names are missing or unknown, or a shape differs."""

    code = "MRK504"


class AxisError(ShapeError, IndexError):
    """A tensor has no such axis."""

    code = "MRK505"


class PositionError(ShapeError, IndexError):
    """An index lies outside of its axis, has too many parts, or is invalid."""

    code = "MRK506"


class RangeError(DTypeError, OverflowError, ValueError):
    """A Python number does not fit a dtype: an integer out of its range, or NaN for an integer dtype."""

    code = "MRK507"


class JitError(TensorError, RuntimeError):
    """The base of errors about functions under `morok.jit`."""

    code = "MRK510"


class JitArgumentError(JitError, TypeError):
    """An argument of a jitted function cannot be part of the key of a plan: it has no hash, or contains itself."""

    code = "MRK511"


class JitValueError(JitError):
    """A jitted function needs elements that depend on its arguments: they are computed when its plan runs, not when it is
    described."""

    code = "MRK512"


class JitDifferenceError(JitError):
    """Two descriptions of a jitted function, one after the other, differ: it depends on something that its plan ignores."""

    code = "MRK513"


class JitEffectError(JitError):
    """A jitted function has a side effect that its plan would not repeat: it changes an attribute, a list or a global, or keeps
    a tensor somewhere."""

    code = "MRK514"


# Compilation and devices


class CompileError(MorokError, RuntimeError):
    """A kernel could not be compiled."""

    code = "MRK601"


class DeviceError(MorokError, ValueError):
    """A device does not exist or cannot be used on this machine."""

    code = "MRK602"


class OutOfMemoryError(MorokError, MemoryError):
    """A buffer could not be allocated."""

    code = "MRK603"


class OptError(MorokError, ValueError):
    """An optimization is not legal on this kernel."""

    code = "MRK604"


class LoweringError(MorokError, RuntimeError):
    """A stage cannot lower a node; the message names both."""

    code = "MRK605"


class OutOfBoundsError(LoweringError, IndexError):
    """A kernel may read or write outside of a buffer; the message names kernel, buffer, index, and values for which it does."""

    code = "MRK606"


class CheckWarning(UserWarning):
    """MOROK_CHECK could neither find an error nor prove that there is none."""


# The command line


class ConfigError(MorokError, ValueError):
    """A setting has an invalid value, or does not exist."""

    code = "MRK901"


class UsageError(MorokError, ValueError):
    """A command, or a function of the package, was used wrongly."""

    code = "MRK902"


class ArgumentTypeError(ShapeError, DTypeError, UsageError):
    """An argument has a wrong Python type; the message shows it."""

    code = "MRK508"


class FileAccessError(MorokError, OSError):
    """A file or a folder cannot be read or written."""

    code = "MRK903"
    whose: ClassVar[str] = "is it the right file, and does it belong to you?"  # the hint where the system refuses it
