"""A limit on the work of one run of the interpreter."""

from __future__ import annotations

import math
from numbers import Integral

from morok.arguments import mistyped
from morok.errors import IRError, StepLimitError


class Steps:
    """The steps that a run may still take: a lane of a node, an iteration of a loop, an element of a tensor are one each."""

    __slots__ = ("_left", "_most")

    def __init__(self, most: int | None = None) -> None:
        """A budget of `most` steps; None: without a limit. IRError for anything but a whole number."""
        if most is not None and (isinstance(most, bool) or not isinstance(most, Integral)):
            raise mistyped(most, "the limit of steps", "a whole number, or None for no limit", IRError)
        self._left = self._most = math.inf if most is None else most

    def take(self, count: int) -> None:
        """Take `count` steps; StepLimitError if fewer are left."""
        self._left -= count
        if self._left < 0:
            raise StepLimitError(
                f"the interpreter would take more than {self._most:,} steps",
                hint="a smaller graph, or a greater `steps`, where that is given",
            )
