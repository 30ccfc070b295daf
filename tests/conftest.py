"""Settings of the whole suite: the same examples on every run, and which cases the quick run leaves out.

`pytest` runs what is quick, `pytest -m ""` everything. A test marked `long` is left out of the quick run; of one marked
`sampled(n)` all cases but each n-th are. `pytest -m long --part K/N` runs one in N of the cases, by their names: `.ci/run` takes
another part for each commit. A failure is named at once, since a run that is ended from outside prints no summary.
"""

from __future__ import annotations

import collections
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from morok.errors import OptError
from morok.optimize import heuristics

settings.register_profile(
    "ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("ci")


class FailuresAtOnce:
    """A plugin that prints the name of a test as soon as it fails."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.write_line(f"\nfailed: {report.nodeid} ({report.when})")


def part(text: str) -> tuple[int, int]:
    """The K and N of K/N, with 0 <= K < N; ValueError for any other text."""
    which, of = map(int, text.split("/"))
    if not 0 <= which < of:
        raise ValueError(text)
    return which, of


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", type=part, metavar="K/N", help="one in N of the cases, by their names: K is 0 to N-1")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # a process that runs tests has no terminal
        config.pluginmanager.register(FailuresAtOnce(config))


@pytest.hookimpl(tryfirst=True)  # before cases are left out by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seen: collections.Counter[str] = collections.Counter()
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None:
            test = item.nodeid.partition("[")[0]
            if seen[test] % mark.args[0]:
                item.add_marker(pytest.mark.long)
            seen[test] += 1
    if (chosen := config.getoption("--part")) is not None:
        which, of = chosen
        parts: tuple[list[pytest.Item], list[pytest.Item]] = ([], [])
        for item in items:
            parts[zlib.crc32(item.nodeid.encode()) % of == which].append(item)
        others, items[:] = parts
        config.hook.pytest_deselected(items=others)


@pytest.fixture(scope="session", autouse=True)
def _choices_are_possible() -> Iterator[None]:
    """An error wherever the heuristics ask for what a kernel cannot have: users get a slower kernel instead."""

    def refused(error: OptError) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heuristics, "refused", refused)
        yield
