"""Optimization strategies, chosen by a program: `t.realize(config=OptimizerConfig(strategy=Beam(8)))`.

Unset fields are taken from the settings (`morok config`).
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
    """The strategy without optimizations: loops stay as they are.

    >>> Unoptimized().settings()["noopt"]
    True
    """

    def settings(self) -> Mapping[str, Any]:
        """The settings with the same effect, for `morok.settings`.

        >>> sorted(Unoptimized().settings())
        ['beam', 'noopt', 'opts']
        """
        return {"noopt": True, "beam": 0, "opts": ""}


@dataclass(frozen=True, slots=True)
class Heuristics:
    """The default strategy: heuristics on loop lengths and the strides of accesses, without timing.

    >>> Heuristics().settings()["beam"]
    0
    """

    def settings(self) -> Mapping[str, Any]:
        """The settings with the same effect, for `morok.settings`.

        >>> sorted(Heuristics().settings())
        ['beam', 'noopt', 'opts']
        """
        return {"noopt": False, "beam": 0, "opts": ""}


@dataclass(frozen=True, slots=True)
class Beam:
    """The strategy that times candidates: a beam search of the best `width`, whose result is cached on disk.

    timeout     seconds after which the search for a kernel makes no more candidates
    upcast_max  most lanes of a candidate
    local_max   most threads of a block
    uops_max    most instructions of a candidate
    runs        timings of each candidate

    ConfigError for a number below 1 and a timeout that is not positive.

    >>> Beam(8).settings()["beam"]
    8
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
        """The settings with the same effect, for `morok.settings`.

        >>> Beam(8, runs=5).settings()["beam_runs"]
        5
        """
        limits = {
            f"beam_{name}": getattr(self, name) for name in ("timeout", "upcast_max", "local_max", "uops_max", "runs")
        }
        return {"noopt": False, "beam": self.width, "opts": "", **limits}


@dataclass(frozen=True, slots=True)
class Explicit:
    """The strategy that gives every kernel these optimizations, in this order; `t.contiguous(*opts)` gives one kernel others.

    ConfigError for anything but a list of Opts; OptError when a kernel is compiled for which one of them is illegal.

    >>> Explicit([Opt(OptOp.UPCAST, 0, 4)]).settings()["opts"]
    'UPCAST(0, 4)'
    """

    opts: Sequence[Opt]

    def __post_init__(self) -> None:
        object.__setattr__(self, "opts", optimizations(self.opts))

    def settings(self) -> Mapping[str, Any]:
        """The settings with the same effect, for `morok.settings`.

        >>> Explicit([]).settings()["noopt"]
        True
        """
        return {"noopt": not self.opts, "beam": 0, "opts": " ".join(map(str, self.opts))}


def optimizations(opts: Any) -> tuple[Opt, ...]:
    """A list or tuple of Opts, as a tuple. ConfigError for anything else."""
    if not isinstance(opts, (list, tuple)) or not all(isinstance(o, Opt) for o in opts):
        raise ConfigError(
            f"{shown(opts)} is not a list of optimizations", place=caller(), expected="[Opt(OptOp.UPCAST, 0, 4), ..]"
        )
    return tuple(opts)


Strategy = Unoptimized | Heuristics | Beam | Explicit


@dataclass(frozen=True, slots=True)
class OptimizerConfig:
    """A strategy (or a list of Opts) and its limits; a field that is None leaves its setting unchanged.

    threads           threads that share a kernel
    k_vectorize       True to vectorize along reductions
    no_output_upcast  True to vectorize no outputs
    search_cuts       number of cuts of a program into kernels whose two alternatives are timed

    ConfigError for anything but a strategy, and for a field outside its values.

    >>> Tensor([1, 2]).sum().realize(config=OptimizerConfig(Unoptimized(), threads=1)).item()
    3
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
            what = f"{shown(self.strategy)} is not a strategy"
            raise ConfigError(
                what, place=caller(), expected="Unoptimized(), Heuristics(), Beam(width), or a list of Opts"
            )
        if self.threads is not None:
            whole(self.threads, "threads", 1, error=ConfigError)
        if self.search_cuts is not None:
            whole(self.search_cuts, "search_cuts", 0, error=ConfigError)
        for name in ("k_vectorize", "no_output_upcast"):
            if getattr(self, name) is not None:
                flag(getattr(self, name), name, ConfigError)

    @staticmethod
    def builder() -> OptimizerConfigBuilder:
        """A builder of an OptimizerConfig, one field a call.

        >>> OptimizerConfig.builder().strategy(Beam(8)).threads(2).build().threads
        2
        """
        return OptimizerConfigBuilder()

    def settings(self) -> Mapping[str, Any]:
        """The settings with the same effect, for `morok.settings`; fields that are None are left out.

        >>> OptimizerConfig(Unoptimized(), threads=2).settings()["threads"]
        2
        """
        given = {name: getattr(self, name) for name in ("threads", "k_vectorize", "no_output_upcast", "search_cuts")}
        assert isinstance(self.strategy, Strategy)
        return {**self.strategy.settings(), **{name: value for name, value in given.items() if value is not None}}


class OptimizerConfigBuilder:
    """A builder of an OptimizerConfig: each method changes one field and returns the builder itself.

    ConfigError for a field outside its values.

    >>> OptimizerConfig.builder().strategy(Beam(8)).threads(2).build().threads
    2
    """

    def __init__(self) -> None:
        self._config = OptimizerConfig()

    def strategy(self, strategy: Strategy | Sequence[Opt]) -> OptimizerConfigBuilder:
        """This builder, with another strategy or list of Opts. ConfigError for anything else.

        >>> OptimizerConfig.builder().strategy(Beam(8)).build().strategy.width
        8
        """
        self._config = replace(self._config, strategy=strategy)
        return self

    def threads(self, threads: int) -> OptimizerConfigBuilder:
        """This builder, with another number of threads. ConfigError for fewer than one.

        >>> OptimizerConfig.builder().threads(2).build().threads
        2
        """
        self._config = replace(self._config, threads=threads)
        return self

    def k_vectorize(self, on: bool = True) -> OptimizerConfigBuilder:
        """This builder, with reductions vectorized or not. ConfigError for anything but a bool.

        >>> OptimizerConfig.builder().k_vectorize().build().k_vectorize
        True
        """
        self._config = replace(self._config, k_vectorize=on)
        return self

    def no_output_upcast(self, on: bool = True) -> OptimizerConfigBuilder:
        """This builder, with outputs kept from vectors or not. ConfigError for anything but a bool.

        >>> OptimizerConfig.builder().no_output_upcast().build().no_output_upcast
        True
        """
        self._config = replace(self._config, no_output_upcast=on)
        return self

    def search_cuts(self, decisions: int) -> OptimizerConfigBuilder:
        """This builder, with another number of cuts whose two alternatives are timed. ConfigError for a negative one.

        >>> OptimizerConfig.builder().search_cuts(4).build().search_cuts
        4
        """
        self._config = replace(self._config, search_cuts=decisions)
        return self

    def build(self) -> OptimizerConfig:
        """The OptimizerConfig with these fields.

        >>> OptimizerConfig.builder().build().threads is None
        True
        """
        return self._config
