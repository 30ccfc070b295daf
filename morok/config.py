"""The table of settings: every MOROK_* variable. Some have a second name without the prefix, as in the reference texts.

A setting is read when it is used, never at import. `with morok.settings(debug="ir"):` overrides the environment for the
code inside, in this thread or task only.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import re
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from morok.arguments import DEVICES, choice, path, real_or_none, several, shown
from morok.caller import caller
from morok.errors import ConfigError, Place
from morok.names import did_you_mean, nearest

T = TypeVar("T")

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
# The environment's own dict. Looking up a missing variable in os.environ raises and catches an exception, which takes ten times
# as long: a call through jit takes 32 us with os.environ, 9.5 us with the dict.
_SET: Final[Mapping[Any, Any]] = getattr(os.environ, "_data", os.environ)
_encoded: Final[Callable[[str], Any]] = str if _SET is os.environ else os.environ.encodekey
_overrides: Final = contextvars.ContextVar("morok settings", default=_NOTHING)


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """One variable: `MOROK_<name>`.

    default  the value of an unset variable
    parse    text -> value; ValueError for invalid text
    takes    the valid values, in words
    meaning  the effect, in words
    bare     True if `<name>` is read too when `MOROK_<name>` is not set
    """

    name: str
    default: T
    parse: Callable[[str], T]
    takes: str
    meaning: str
    bare: bool = False
    keys: frozenset[Any] = field(init=False, repr=False)  # its variables as keys of `_SET`

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", frozenset(map(_encoded, self.variables)))

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that set it; the first that is set counts."""
        return (f"MOROK_{self.name}", self.name) if self.bare else (f"MOROK_{self.name}",)

    @property
    def value(self) -> T:
        return self.read()[0]

    def read(self) -> tuple[T, str]:
        """(value, source): the source is "program", "environment" or "default". ConfigError if the text is invalid."""
        override = _overrides.get()
        if override is not _NOTHING and self.name in override:
            found: T = override[self.name]
            return found, "program"
        if not _warned:
            _warn_of_strangers()
        if _SET.keys().isdisjoint(self.keys):
            return self.default, "default"
        for variable in self.variables:
            text = os.environ.get(variable)
            if text is None:
                continue
            try:
                return self.parse(text), "environment"
            except ValueError:
                raise ConfigError(f"{variable}={text!r} cannot be read", expected=self.takes) from None
        return self.default, "default"


class Together:
    """A group of settings read together, in one step if none is set."""

    def __init__(self, *settings: Setting[Any]) -> None:
        self.settings = settings
        self.defaults = tuple([s.default for s in settings])
        self.keys = frozenset().union(*[s.keys for s in settings])

    @property
    def values(self) -> tuple[Any, ...]:
        if _warned and _overrides.get() is _NOTHING and _SET.keys().isdisjoint(self.keys):
            return self.defaults
        return tuple([s.value for s in self.settings])


def _switch(text: str) -> bool:
    low = text.strip().lower()
    if low in ("1", "true", "on", "yes"):
        return True
    if low in ("", "0", "false", "off", "no"):
        return False
    raise ValueError(text)


def _one_of(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        for name in names:
            if text.strip().lower() == name.lower():
                return name
        raise ValueError(text)

    return parse


def _file(text: str) -> Path | None:
    return path(text, "a setting") if text else None


def _mode(text: str) -> int:
    mode = int(text)
    if mode not in (0, 1, 2):
        raise ValueError(text)
    return mode


def _count(text: str) -> int:
    n = int(text)
    if n < 1:
        raise ValueError(text)
    return n


def _natural(text: str) -> int:
    n = int(text)
    if n < 0:
        raise ValueError(text)
    return n


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError(text)
    return seconds


_FLAGS: Final = ("nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc")


def _flags(text: str) -> frozenset[str]:
    if text.strip().lower() == "fast":
        return frozenset(_FLAGS)
    names = frozenset(n.strip() for n in text.split(",") if n.strip())
    if not names <= frozenset(_FLAGS):
        raise ValueError(text)
    return names


def liberties(words: Any) -> frozenset[str]:
    """A set of fast-math flags as in MOROK_FAST_MATH; ConfigError for anything else."""
    for word in several(words, "the liberties of float arithmetic", "a set of words", ConfigError):
        choice(word, "a liberty of float arithmetic", _FLAGS, ConfigError)
    return frozenset(words)


def _buffers(text: str) -> int:
    most = int(text)
    if most and most < 4:  # Where has three operands and a result
        raise ValueError(text)
    return most


_OPTS: Final = re.compile(r"\s*([A-Z]+\(-?\d+(, *-?\d+)?\)\s*)*")


def _opts(text: str) -> str:
    if _OPTS.fullmatch(text) is None:
        raise ValueError(text)
    return " ".join(text.split())


DEBUG: Final = Setting(
    "DEBUG", "", _one_of("", "ir"), '"ir" or nothing', "ir: print the program after each of the 22 stages"
)
NOOPT: Final = Setting("NOOPT", False, _switch, "0 or 1", "apply no optimizations in stage 7")
DEVECTORIZE: Final = Setting(
    "DEVECTORIZE",
    1,
    _mode,
    "0, 1 or 2",
    "ops that stage 14 splits to the widths of the target. 1: arithmetic, loads and stores; 0: loads and stores only; 2: none",
    bare=True,
)
DEVICE: Final = Setting("DEVICE", "CPU", _one_of(*DEVICES), "CPU, CUDA or NULL", "the default device of tensors")
CHECK: Final = Setting(
    "CHECK",
    False,
    _switch,
    "0 or 1",
    "prove that kernels stay inside their buffers; verify the program between stages, and helpers' contracts at each call",
)
MAX_BUFFERS: Final = Setting(
    "MAX_BUFFERS",
    0,
    _buffers,
    "0, or a number from 4 on",
    "most buffers that one kernel may use; 0: the limit of the device",
)
TRACE: Final[Setting[Path | None]] = Setting(
    "TRACE", None, _file, "a file name", "write every rule that fires to this file, as JSON"
)
CACHE_DIR: Final[Setting[Path | None]] = Setting(
    "CACHE_DIR",
    None,
    _file,
    "a folder",
    "folder of cached matchers, kernels, verdicts and search results; used if it belongs to you and nobody else can write",
)
FAST_MATH: Final = Setting(
    "FAST_MATH",
    frozenset({"contract"}),
    _flags,
    f'"fast", or some of {", ".join(_FLAGS)}, separated by commas',
    "fast-math flags of float arithmetic; each enables the rules that assume it",
)

THREADS: Final = Setting(
    "THREADS",
    len(os.sched_getaffinity(0)),
    _count,
    "a number from 1 up",
    "threads of the CPU that share a kernel, or independent kernels; by default one for each usable core. Results "
    "do not depend on it",
)
L1_BYTES: Final = Setting(
    "L1_BYTES",
    0,
    _natural,
    "a number from 0 up",
    "bytes of a core's L1 data cache, for the tiles of matrix products; 0: as detected",
)
L2_BYTES: Final = Setting(
    "L2_BYTES",
    0,
    _natural,
    "a number from 0 up",
    "bytes of a core's L2 cache, for the tiles of matrix products; 0: as detected",
)
BEAM: Final = Setting(
    "BEAM",
    0,
    _natural,
    "a number from 0 up",
    "optimize kernels by timing, keeping N candidates a round; 0: by heuristics",
)
BEAM_TIMEOUT: Final = Setting(
    "BEAM_TIMEOUT", 60.0, _seconds, "seconds", "time after which beam search makes no more candidates for a kernel"
)
BEAM_UPCAST_MAX: Final = Setting(
    "BEAM_UPCAST_MAX",
    256,
    _count,
    "a number from 1 up",
    "most lanes of a beam search candidate, of all axes together",
    bare=True,
)
BEAM_LOCAL_MAX: Final = Setting(
    "BEAM_LOCAL_MAX",
    1024,
    _count,
    "a number from 1 up",
    "most threads in a block of a beam search candidate",
    bare=True,
)
BEAM_UOPS_MAX: Final = Setting(
    "BEAM_UOPS_MAX", 3000, _count, "a number from 1 up", "most instructions of a beam search candidate", bare=True
)
BEAM_RUNS: Final = Setting(
    "BEAM_RUNS",
    3,
    _count,
    "a number from 1 up",
    "number of timings of a beam search candidate; the best counts",
    bare=True,
)
SEARCH_CUTS: Final = Setting(
    "SEARCH_CUTS",
    0,
    _natural,
    "a number from 0 up",
    "search for faster cuts into kernels: time N of the cost model's closest decisions reversed; 0: no search",
)
IGNORE_BEAM_CACHE: Final = Setting(
    "IGNORE_BEAM_CACHE",
    False,
    _switch,
    "0 or 1",
    "repeat beam searches and searches for cuts, and replace their stored results",
    bare=True,
)
K_VECTORIZE: Final = Setting(
    "K_VECTORIZE",
    False,
    _switch,
    "0 or 1",
    "heuristics vectorize the reduced axis of a kernel, if it has one, before its outputs",
)
NO_OUTPUT_UPCAST: Final = Setting(
    "NO_OUTPUT_UPCAST", False, _switch, "0 or 1", "neither heuristics nor beam search vectorize an axis of the output"
)
OPTS: Final = Setting(
    "OPTS",
    "",
    _opts,
    "optimizations as `kernels()` lists them, such as UPCAST(0, 4) LOCAL(1, 16); or nothing",
    "the optimizations of every kernel, in place of the choice of heuristics or beam search",
)
CPU_BACKEND: Final = Setting(
    "CPU_BACKEND",
    "LLVM",
    _one_of("LLVM", "interpreter"),
    "LLVM or interpreter",
    "the executor of kernels on the CPU. interpreter: a slow reference, which raises errors for undefined operations",
)
ALLOW_HALF8: Final = Setting(
    "ALLOW_HALF8",
    True,
    _switch,
    "0 or 1",
    "on a GPU, eight f16 or bf16 elements may be loaded or stored at once; else at most four",
    bare=True,
)

SETTINGS: Final[tuple[Setting[Any], ...]] = (
    DEBUG,
    NOOPT,
    DEVECTORIZE,
    DEVICE,
    CHECK,
    MAX_BUFFERS,
    TRACE,
    CACHE_DIR,
    FAST_MATH,
    THREADS,
    L1_BYTES,
    L2_BYTES,
    BEAM,
    BEAM_TIMEOUT,
    BEAM_UPCAST_MAX,
    BEAM_LOCAL_MAX,
    BEAM_UOPS_MAX,
    BEAM_RUNS,
    SEARCH_CUTS,
    IGNORE_BEAM_CACHE,
    K_VECTORIZE,
    NO_OUTPUT_UPCAST,
    OPTS,
    CPU_BACKEND,
    ALLOW_HALF8,
)
# settings of the reference texts that this compiler lacks -> the reason
ABSENT: Final[Mapping[str, str]] = MappingProxyType(
    {"MOROK_AMX": "there is no code for matrix coprocessors (AMX); matrix products run on vectors"}
)
# settings that a kernel's code depends on
CODE: Final = Together(
    NOOPT,
    DEVECTORIZE,
    FAST_MATH,
    THREADS,
    L1_BYTES,
    L2_BYTES,
    BEAM,
    K_VECTORIZE,
    NO_OUTPUT_UPCAST,
    OPTS,
    CPU_BACKEND,
    ALLOW_HALF8,
)
# settings that every rewriting reads
REWRITING: Final = Together(FAST_MATH, CHECK, TRACE)
_BY_NAME: Final = {s.name: s for s in SETTINGS}
_ALL_KEYS: Final = tuple(sorted(key for s in SETTINGS for key in s.keys))


def code_key() -> tuple[Any, ...]:
    """The values of the settings that a kernel's code depends on."""
    return CODE.values


def all_key() -> Hashable:
    """A cache key of the current values of all settings."""
    override = _overrides.get()
    return (tuple(map(_SET.get, _ALL_KEYS)), () if override is _NOTHING else tuple(sorted(override.items(), key=str)))


_warned: set[str] = set()  # not empty once the environment has been checked


def _warn_of_strangers() -> None:
    """Warn, once, of each MOROK_* variable that is no setting: most are misspelt."""
    if _warned:
        return
    _warned.add("")
    known = {f"MOROK_{name}" for name in _BY_NAME}
    for name in sorted(n for n in os.environ if n.startswith("MOROK_") and n not in known):
        near = _near(name.removeprefix("MOROK_"))
        hint = did_you_mean([f"MOROK_{n}" for n in near], "`morok config` lists the settings")
        said = f"changes nothing: {ABSENT[name]}" if name in ABSENT else f"is no setting of Morok; {hint}"
        place = _caller()
        at = ("morok", 1) if place is None else (place.file, place.line)  # None: called by a command, not a program
        warnings.warn_explicit(f"the variable {name} {said}", UserWarning, *at)


def _near(name: str) -> list[str]:
    """The settings with the most similar names."""
    return nearest(name, sorted(_BY_NAME), 2)


def _caller() -> Place | None:
    """The user's line."""
    return caller()


def _text(value: Any) -> str:
    """A value as text for its variable; ValueError if it has no such text."""
    if isinstance(value, (set, frozenset, list, tuple)):
        if not all(isinstance(v, str) for v in value):
            raise ValueError
        return ",".join(sorted(value))
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    number = real_or_none(value)
    if number is None:
        raise ValueError
    return str(number)


@contextlib.contextmanager
def settings(**values: Any) -> Iterator[None]:
    """A `with` block with other settings: `settings(debug="ir", fast_math="nsz,reassoc")`, in this thread or task.

    Values are parsed as those of the variables. ConfigError for an unknown setting or an invalid value.

    >>> with morok.settings(threads=1):
    ...     (Tensor([1, 2]) + 1).tolist()
    [2, 3]
    """
    new = dict(_overrides.get())
    for name, value in values.items():
        setting = _BY_NAME.get(name.upper())
        if setting is None:
            raise ConfigError(
                f"there is no setting {name!r}",
                place=_caller(),
                expected=", ".join(s.name.lower() for s in SETTINGS),
                hint=did_you_mean([n.lower() for n in _near(name.upper())]),
            )
        if value is not None or setting.default is not None:
            try:
                value = setting.parse(_text(value))
            except ValueError:
                raise ConfigError(
                    f"{name}={shown(value)} cannot be read", place=_caller(), expected=setting.takes
                ) from None
        new[setting.name] = value
    token = _overrides.set(new)
    try:
        yield
    finally:
        _overrides.reset(token)


def cache_dir() -> Path:
    """The cache folder: MOROK_CACHE_DIR, or the platform's. It need not exist."""
    chosen = CACHE_DIR.value
    if chosen is not None:
        return chosen
    import platformdirs  # lazy: not needed with MOROK_CACHE_DIR

    return Path(platformdirs.user_cache_dir("morok", appauthor=False))
