"""The state of a helper's contract: untested, tested by so many calls, or false."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Tested(NamedTuple):
    """The state of a contract: "untested", "tested" or "false".

    message  why it is untested, or the call that breaks it, or what tests found strange
    digest   of the code that ran
    """

    state: str
    calls: int = 0
    message: str = ""
    digest: str = ""
    files: Mapping[str, str] = {}

    def __str__(self) -> str:
        return f"tested ({self.calls:,} calls)" if self.state == "tested" else self.state


def worst(states: Sequence[Tested]) -> Tested:
    """The least that is known of several contracts, with the messages of all that are known no better."""
    order = ("false", "untested", "tested")
    least = min(states, key=lambda t: (order.index(t.state), t.calls))
    notes = "\n".join(t.message for t in states if t.state == least.state and t.message)
    return least._replace(message=notes)


def digests_of(files: Iterable[str]) -> dict[str, str]:
    """SHA-256 of each file; "" of one that cannot be read."""
    found = {}
    for file in files:
        try:
            found[file] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
        except OSError:
            found[file] = ""
    return found
