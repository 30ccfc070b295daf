"""How kernels are to be optimized, said in a program: `t.realize(config=OptimizerConfig(strategy=Beam(8)))`.

What is not said here is as the settings (`morok config`) have it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from morok.arguments import flag, real, refused, shown, whole
from morok.caller import caller
from morok.errors import ConfigError
from morok.optimize.opts import Opt


@dataclass(frozen=True, slots=True)
class Unoptimized:
    """Loops as they are."""

    def settings(self) -> Mapping[str, Any]:
        return {"noopt": True, "beam": 0, "opts": ""}


@dataclass(frozen=True, slots=True)
class Heuristics:
    """Rules from the shape of loops and the strides of accesses; nothing is timed."""

    def settings(self) -> Mapping[str, Any]:
        return {"noopt": False, "beam": 0, "opts": ""}


@dataclass(frozen=True, slots=True)
class Beam:
    """Candidates are timed, and the best `width` of them make the next; what is found is remembered on disk.

    timeout     seconds after which a kernel's search makes no more candidates
    upcast_max  lanes, local_max threads of a block, uops_max instructions of a candidate
    runs        how often each is timed
    """

    width: int = 4
    timeout: float = 60.0
    upcast_max: int = 256
    local_max: int = 1024
    uops_max: int = 3000
    runs: int = 3

    def __post_init__(self) -> None:
        for name in ("width", "upcast_max", "local_max", "uops_max", "runs"):
            whole(getattr(self, name), f"{name} of Beam", 1, error=ConfigError)
        if real(self.timeout, "timeout of Beam", 0.0, sys.float_info.max, ConfigError) == 0:
            raise refused(self.timeout, "timeout of Beam", "more than 0 seconds", ConfigError)

    def settings(self) -> Mapping[str, Any]:
        limits = {f"beam_{name}": getattr(self, name) for name in ("timeout", "upcast_max", "local_max", "uops_max", "runs")}
        return {"noopt": False, "beam": self.width, "opts": "", **limits}


@dataclass(frozen=True, slots=True)
class Explicit:
    """These optimizations, in this order, of every kernel: `Explicit([Opt(OptOp.UPCAST, 0, 4)])`. OptError where a kernel cannot
    have one of them. `t.contiguous(*opts)` gives one kernel others.
    """

    opts: Sequence[Opt]

    def __post_init__(self) -> None:
        object.__setattr__(self, "opts", optimizations(self.opts))

    def settings(self) -> Mapping[str, Any]:
        return {"noopt": not self.opts, "beam": 0, "opts": " ".join(map(str, self.opts))}


def optimizations(opts: Any) -> tuple[Opt, ...]:
    """A list of Opts as a tuple. ConfigError for anything else."""
    if not isinstance(opts, (list, tuple)) or not all(isinstance(o, Opt) for o in opts):
        raise ConfigError(f"{shown(opts)} is no list of optimizations", place=caller(), expected="[Opt(OptOp.UPCAST, 0, 4), ..]")
    return tuple(opts)


Strategy = Unoptimized | Heuristics | Beam | Explicit


@dataclass(frozen=True, slots=True)
class OptimizerConfig:
    """A strategy, or a list of Opts, and what it may do; None: as the settings say. `search_cuts` is how many decisions where to
    cut a program into kernels are timed both ways. ConfigError for what is no strategy, and for other values that cannot be.
    """

    strategy: Strategy | Sequence[Opt] = field(default_factory=Heuristics)
    threads: int | None = None
    k_vectorize: bool | None = None
    no_output_upcast: bool | None = None
    search_cuts: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.strategy, (list, tuple)):
            object.__setattr__(self, "strategy", Explicit(self.strategy))
        if not isinstance(self.strategy, Strategy):
            what = f"{shown(self.strategy)} is no strategy"
            raise ConfigError(what, place=caller(), expected="Unoptimized(), Heuristics(), Beam(width), or a list of Opts")
        if self.threads is not None:
            whole(self.threads, "threads", 1, error=ConfigError)
        if self.search_cuts is not None:
            whole(self.search_cuts, "search_cuts", 0, error=ConfigError)
        for name in ("k_vectorize", "no_output_upcast"):
            if getattr(self, name) is not None:
                flag(getattr(self, name), name, ConfigError)

    @staticmethod
    def builder() -> OptimizerConfigBuilder:
        return OptimizerConfigBuilder()

    def settings(self) -> Mapping[str, Any]:
        """The settings that say the same, for `morok.settings`."""
        said = {name: getattr(self, name) for name in ("threads", "k_vectorize", "no_output_upcast", "search_cuts")}
        assert isinstance(self.strategy, Strategy)
        return {**self.strategy.settings(), **{name: value for name, value in said.items() if value is not None}}


class OptimizerConfigBuilder:
    """An OptimizerConfig, step by step: `OptimizerConfig.builder().strategy(Beam(8)).threads(2).build()`."""

    def __init__(self) -> None:
        self._config = OptimizerConfig()

    def strategy(self, strategy: Strategy | Sequence[Opt]) -> OptimizerConfigBuilder:
        self._config = replace(self._config, strategy=strategy)
        return self

    def threads(self, threads: int) -> OptimizerConfigBuilder:
        self._config = replace(self._config, threads=threads)
        return self

    def k_vectorize(self, on: bool = True) -> OptimizerConfigBuilder:
        self._config = replace(self._config, k_vectorize=on)
        return self

    def no_output_upcast(self, on: bool = True) -> OptimizerConfigBuilder:
        self._config = replace(self._config, no_output_upcast=on)
        return self

    def search_cuts(self, decisions: int) -> OptimizerConfigBuilder:
        self._config = replace(self._config, search_cuts=decisions)
        return self

    def build(self) -> OptimizerConfig:
        return self._config
