"""Settings of the whole suite: the same examples on every run, and which cases the quick run leaves out.

`pytest` runs what is quick, `pytest -m ""` everything. A test marked `long` is left out of the quick run; of one marked
`sampled(n)` all cases but each n-th are.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from morok.errors import OptError
from morok.optimize import heuristics

settings.register_profile(
    "ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("ci")


@pytest.hookimpl(tryfirst=True)  # before cases are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seen: collections.Counter[str] = collections.Counter()
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None:
            test = item.nodeid.partition("[")[0]
            if seen[test] % mark.args[0]:
                item.add_marker(pytest.mark.long)
            seen[test] += 1


@pytest.fixture(scope="session", autouse=True)
def _choices_are_possible() -> Iterator[None]:
    """An error wherever the heuristics ask for what a kernel cannot have: users get a slower kernel instead."""

    def refused(error: OptError) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heuristics, "refused", refused)
        yield
