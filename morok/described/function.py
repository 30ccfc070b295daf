"""`morok.jit`: functions of tensors and modules, described once for each kind of call, and then run by a plan."""

from __future__ import annotations

import functools
import inspect
import itertools
import types
from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast

from morok.arguments import function as callable_
from morok.caller import caller
from morok.config import all_key
from morok.described.call_arguments import Arguments, Stands, apart, is_over, leaf_of, over_arrays
from morok.described.call_plan import Plan
from morok.described.description import Described, agree, described, lazies
from morok.described.reach import Reach
from morok.described.turns import TURN
from morok.described.value_keys import is_a, word_of
from morok.errors import JitDifferenceError, JitError, MorokError, UsageError
from morok.ir.uop import UOp
from morok.passes.appended import appended_key
from morok.tensor.describing import current, descriptions, planning, refuse_elsewhere
from morok.tensor.realize import is_watched, realize
from morok.tensor.tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")

MOST: Final = 64  # most plans of one function
WARM: Final = 8  # most plans of one function that keep memory: those used last
# most plans of one key for other tensors or arrays that the function reaches: a plan keeps its own alive
_REPLACED: Final = 4
_RETRIES: Final = 4  # most descriptions repeated after computing tensors that the function reaches
_uses: Final = itertools.count(1)
_OWN: Final = frozenset({"__wrapped__", "_plans", "_warm", *functools.WRAPPER_ASSIGNMENTS})


class Jitted(Generic[P, R]):
    """A jitted function, with its plans. Other attributes are those of the function."""

    def __init__(self, function: Callable[P, R]) -> None:
        callable_(function, "the argument of jit")
        self.__wrapped__: Callable[P, R] = function
        functools.update_wrapper(self, function, updated=())
        self._plans: dict[Hashable, tuple[Plan, ...]] = {}
        self._warm: tuple[Plan, ...] = ()  # the plans that keep memory, the last one used first

    def __getattr__(self, name: str) -> Any:
        if name in _OWN:  # not set yet
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value) if name in _OWN else setattr(self.__wrapped__, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__wrapped__, name)

    def __repr__(self) -> str:
        return f"<jitted {self.name}, {self.plans} plan{'' if self.plans == 1 else 's'}>"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        function: Any = self.__wrapped__
        if instance is None or not hasattr(type(function), "__get__"):
            return self
        bound = function.__get__(instance, owner)
        is_method = isinstance(bound, types.MethodType) and bound.__func__ is function
        return types.MethodType(self, instance) if is_method else self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.__wrapped__,)

    @property
    def name(self) -> str:
        """The function's name."""
        return str(getattr(self.__wrapped__, "__name__", type(self.__wrapped__).__name__))

    @property
    def plans(self) -> int:
        """The number of plans, at most 64."""
        return sum(map(len, list(self._plans.values())))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if current() is not None or is_watched():  # inside another description, or observed: call the function itself
            return self._inlined(args, kwargs)
        call = Arguments(args, kwargs)
        if descriptions:
            for node in call.leaves:
                refuse_elsewhere(node)
        key = (call.key, all_key(), appended_key())
        for plan in self._plans.get(key, ()):
            if plan.fits(call):
                break
        else:
            plan = self._found(key, call, args, kwargs)
        plan.used = next(_uses)
        if self._warm[0] is not plan:
            self._warmed(plan)
        return cast(R, plan.run(call))

    def _warmed(self, plan: Plan) -> None:
        """Put a plan first among those that keep their memory; beyond WARM of them, the least recently used give it back."""
        warm = (plan, *[p for p in self._warm if p is not plan])
        for old in warm[WARM:]:
            old.release()
        self._warm = warm[:WARM]

    def _inlined(self, args: Any, kwargs: Any) -> R:
        """The value of a call without a plan: arrays are tensors there, too."""
        made: dict[int, tuple[Any, Tensor]] = {}
        args, kwargs = over_arrays(args, made), over_arrays(kwargs, made)
        arrays, marks = list(made.values()), [object() for _ in made]
        for (_, t), mark in zip(arrays, marks, strict=True):
            t._mark = mark  # until it is written
        result = self.__wrapped__(*args, **kwargs)
        if written := [(array, t) for (array, t), mark in zip(arrays, marks, strict=True) if t._mark is not mark]:
            if (description := current()) is not None:
                description.written_arrays += [(t.uop, not is_over(array, t)) for array, t in written]
            else:
                for array, t in apart(written):
                    array[...] = t.numpy()
        return result

    def _found(self, key: Hashable, call: Arguments, args: Any, kwargs: Any) -> Plan:
        """The plan of a call if the quick check found none: one that fits by comparing values, or a new one."""
        with TURN:
            plan = self._fitting(key, call, Reach(self._roots(call)))
            if plan is not None:
                return plan
            with planning():
                made = self._described(call, args, kwargs)
            # another thread may have described, for which the function has waited
            plan = self._fitting(key, call, made.reach)
            if plan is None:
                self._keep(key, made)
            return plan or made

    def _fitting(self, key: Hashable, call: Arguments, reach: Reach) -> Plan | None:
        """A plan for the values that the function reaches; None if there is none."""
        for plan in self._plans.get(key, ()):
            if plan.reach.difference(reach):
                continue
            plan.compute()
            if plan.fits_tensors(call):
                plan.reach = reach
                return plan
        return None

    def _roots(self, call: Arguments) -> list[tuple[str, Any]]:
        words = [word_of(v if is_a(v, type) else type(v)) for v in call.roots]
        return [
            (self.name, self.__wrapped__),
            *[(f"an argument ({w})", v) for w, v in zip(words, call.roots, strict=True)],
        ]

    def _described(self, call: Arguments, args: Any, kwargs: Any) -> Plan:
        stands, roots = Stands(call, args, kwargs), self._roots(call)
        keys: list[UOp] = []

        def once(shifted: bool) -> Described:
            return described(self.__wrapped__, stands, keys, roots, self.name, shifted)

        made = once(False)
        for _ in range(_RETRIES):
            pending, shared = lazies(made), _shared(call, made, stands)
            if not pending and not shared and not made.noted.computed:
                break
            # lazy tensors that the function reaches are computed first; arguments that it also reaches are passed themselves
            realize(pending, asked=False)
            stands.kept |= shared
            made = once(False)
        try:
            other = once(True)
        except MorokError as problem:
            if isinstance(problem, JitError) or not call.binds:
                raise
            raise JitDifferenceError(
                f"described twice, {self.name} fails where variables are bound to other values: {problem.message}",
                place=caller(),
                expected="one graph for all values of a variable",
                hint="use other variables for values that the function binds itself",
            ) from problem
        agree(made, other, self.name)
        return Plan(made, other, stands, Reach(roots), call)

    def _keep(self, key: Hashable, plan: Plan) -> None:
        plan.used = next(_uses)
        others = sorted(self._plans.get(key, ()), key=lambda p: -p.used)
        replaced = [p for p in others if p.reach.data_ids != plan.reach.data_ids]
        kept = [p for p in others if p not in replaced[_REPLACED - 1 :]]
        plans = {**self._plans, key: (plan, *kept)}
        while sum(map(len, plans.values())) > MOST:
            _, oldest = min((p.used, k) for k, found in enumerate(plans.values()) for p in found)
            chosen = [*plans][oldest]
            plans[chosen] = tuple(sorted(plans[chosen], key=lambda p: -p.used)[:-1])
            if not plans[chosen]:
                del plans[chosen]
        self._plans = plans
        self._warm = (plan, *[p for p in self._warm if any(p in found for found in plans.values())])
        self._warmed(plan)


def _shared(call: Arguments, made: Described, stands: Stands) -> set[int]:
    """The ids of argument tensors whose memory, or the memory that they are a view of, the function also reaches otherwise."""
    reached = {node for node in made.buffers if node in call.leaves}
    return {key for key, t in call.tensors.items() if leaf_of(call.nodes.get(key, t.uop)) in reached} - stands.kept


def jit(function: Callable[P, R]) -> Jitted[P, R]:
    """`function`, described once for each kind of call and then run by a compiled plan, for repeated calls.

    Calls are of one kind if their arguments have the same structure of containers, with tensors of the same shapes, dtypes,
    devices and sharing of memory, and Python values of the same types and bits; if settings are the same; and if the
    modules, closures and globals that the function reaches are unchanged. Arrays count as tensors. The value of a bound
    variable may differ.

    A call has the same result, writes and random numbers as without jit; results have memory of their own. The function
    itself is called only to describe it, twice: its prints and accesses to files happen then.

    UsageError for a generator or coroutine; JitArgumentError for an argument without a hash; JitValueError if the
    function needs elements that depend on its arguments; JitDifferenceError and JitEffectError if a plan could not
    repeat what the function does.

    >>> @morok.jit
    ... def step(x: Tensor, scale: float) -> Tensor:
    ...     return x.relu() * scale
    >>> [step(Tensor([-1.0, k]), 2.0).tolist() for k in (1.0, 2.0)], step.plans
    ([[0.0, 2.0], [0.0, 4.0]], 1)
    """
    if (
        inspect.isgeneratorfunction(function)
        or inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
    ):
        raise UsageError(
            f"jit of {getattr(function, '__name__', function)}, which does not return when it has computed",
            place=caller(),
            expected="a function that returns its results",
        )
    return Jitted(function)
