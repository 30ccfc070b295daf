"""Helpers of rules about launches and about what threads share: the compiler's own, and some that only false rules name."""

from __future__ import annotations

from typing import Any

from morok import helper
from morok.passes.axis_expansion import AxisOrder, shared  # noqa: F401
from morok.passes.gpudims import Launch, coordinate, idle  # noqa: F401


@helper
def thread(p: Any, launch: Any) -> Any: ...


@helper
def known(s: Any, t: Any, order: Any) -> Any: ...


@helper
def taken(s: Any, t: Any, order: Any) -> Any: ...


@helper
def anywhere(s: Any, t: Any, order: Any) -> Any: ...
