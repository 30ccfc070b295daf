"""How kernels are to be optimized, said in a program: `t.realize(config=OptimizerConfig(strategy=Beam(8)))`.

What is not said here is as the settings (`morok config`) have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from morok.caller import caller
from morok.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Unoptimized:
    """Loops as they are."""

    def settings(self) -> Mapping[str, Any]:
        return {"noopt": True, "beam": 0}


@dataclass(frozen=True, slots=True)
class Heuristics:
    """Rules from the shape of loops and the strides of accesses; nothing is timed."""

    def settings(self) -> Mapping[str, Any]:
        return {"noopt": False, "beam": 0}


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

    def settings(self) -> Mapping[str, Any]:
        limits = {f"beam_{name}": getattr(self, name) for name in ("timeout", "upcast_max", "local_max", "uops_max", "runs")}
        return {"noopt": False, "beam": self.width, **limits}


Strategy = Unoptimized | Heuristics | Beam


@dataclass(frozen=True, slots=True)
class OptimizerConfig:
    """A strategy, and what it may do; None: as the settings say. ConfigError for what is no strategy, and for other values where
    they are used.
    """

    strategy: Strategy = field(default_factory=Heuristics)
    threads: int | None = None
    k_vectorize: bool | None = None
    no_output_upcast: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.strategy, Strategy):
            raise ConfigError(
                f"{self.strategy!r} is no strategy", place=caller(), expected="Unoptimized(), Heuristics() or Beam(width)"
            )

    @staticmethod
    def builder() -> OptimizerConfigBuilder:
        return OptimizerConfigBuilder()

    def settings(self) -> Mapping[str, Any]:
        """The settings that say the same, for `morok.settings`."""
        said = {name: getattr(self, name) for name in ("threads", "k_vectorize", "no_output_upcast")}
        return {**self.strategy.settings(), **{name: value for name, value in said.items() if value is not None}}


class OptimizerConfigBuilder:
    """An OptimizerConfig, step by step: `OptimizerConfig.builder().strategy(Beam(8)).threads(2).build()`."""

    def __init__(self) -> None:
        self._config = OptimizerConfig()

    def strategy(self, strategy: Strategy) -> OptimizerConfigBuilder:
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

    def build(self) -> OptimizerConfig:
        return self._config
