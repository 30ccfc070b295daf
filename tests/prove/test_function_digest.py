"""The digest of a function: another one wherever something that it refers to is edited, and equal in every process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LIMITS = "hp/limits.py"
PLAIN = "LIMIT = 4\n"
# The helper's module, what is edited, its text before, and after.
EDITS = {
    "a name imported in the body": (
        "def h(x):\n    from hp.limits import LIMIT\n    return LIMIT\n",
        LIMITS,
        PLAIN,
        "LIMIT = 5\n",
    ),
    "a relative import in the body": (
        "def h(x):\n    from .limits import LIMIT\n    return LIMIT\n",
        LIMITS,
        PLAIN,
        "LIMIT = 5\n",
    ),
    "a module imported in the body": ("def h(x):\n    import beside\n    return beside.K\n", "beside.py", "K = 1\n", "K = 2\n"),
    "a module of a package": ("import hp.limits\ndef h(x):\n    return hp.limits.LIMIT\n", LIMITS, PLAIN, "LIMIT = 5\n"),
    "the contents of slots": (
        "from hp.limits import MADE\ndef h(x):\n    return MADE.n\n",
        LIMITS,
        "from hp.kinds import Box\nMADE = Box(4)\n",
        "from hp.kinds import Box\nMADE = Box(5)\n",
    ),
    "a property": (
        "from hp.limits import Known\ndef h(x):\n    return Known().n\n",
        LIMITS,
        "class Known:\n    @property\n    def n(self):\n        return 4\n",
        "class Known:\n    @property\n    def n(self):\n        return 5\n",
    ),
    "a cached property": (
        "from hp.limits import Known\ndef h(x):\n    return Known().n\n",
        LIMITS,
        "import functools\nclass Known:\n    n = functools.cached_property(lambda self: 4)\n",
        "import functools\nclass Known:\n    n = functools.cached_property(lambda self: 5)\n",
    ),
    "a metaclass": (
        "from hp.limits import Known\ndef h(x):\n    return Known.n\n",
        LIMITS,
        "class M(type):\n    n = property(lambda cls: 4)\nclass Known(metaclass=M):\n    pass\n",
        "class M(type):\n    n = property(lambda cls: 5)\nclass Known(metaclass=M):\n    pass\n",
    ),
    "a long array": (
        "from hp.limits import TABLE\ndef h(x):\n    return TABLE[1500]\n",
        LIMITS,
        "import numpy as np\nTABLE = np.arange(2000)\n",
        "import numpy as np\nTABLE = np.arange(2000)\nTABLE[1500] = 7\n",
    ),
    "a long deque": (
        "from hp.limits import ROW\ndef h(x):\n    return ROW[4000]\n",
        LIMITS,
        "import collections\nROW = collections.deque(range(5000))\n",
        "import collections\nROW = collections.deque([*range(4000), 7, *range(4001, 5000)])\n",
    ),
}
ASK = "import hp.helper; from morok.prove.function_digest import code_of; print(code_of(hp.helper.h, 'hp.helper').digest)"


def digest(folder: Path) -> str:
    done = subprocess.run([sys.executable, "-B", "-c", ASK], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_what_a_function_refers_to_is_seen(name: str, tmp_path: Path) -> None:
    helper, edited, before, after = EDITS[name]
    (tmp_path / "hp").mkdir()
    (tmp_path / "hp/__init__.py").write_text("")
    (tmp_path / "hp/helper.py").write_text(helper)
    (tmp_path / "hp/kinds.py").write_text("class Box:\n    __slots__ = ('n',)\n    def __init__(self, n):\n        self.n = n\n")
    (tmp_path / edited).write_text(before)
    first = digest(tmp_path)
    assert digest(tmp_path) == first, "another process"
    (tmp_path / edited).write_text(after)
    assert digest(tmp_path) != first
