"""The digest of a function: another one wherever something that it refers to is edited, and equal in every process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from morok.prove import distributions

LIMITS = "hp/limits.py"
PLAIN = "LIMIT = 4\n"
TUPLE = """from typing import NamedTuple
class Made(NamedTuple):
    by: int
    def half(self, n):
        return {}
MADE = Made(2)
"""
NUMBER = "import enum\nclass Kind(enum.IntEnum):\n    A = 1\n    def half(self, n):\n        return {}\n"
TEXT = "class Text(str):\n    def n(self):\n        return {}\nMADE = Text('a')\n"
SINGLE = "import functools\n@functools.singledispatch\ndef f(n):\n    return None\n@f.register\ndef _(n: int):\n    return {}\n"
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
    "a module that is named when it runs": (
        "import importlib\ndef h(x):\n    return importlib.import_module('beside').f(x)\n",
        "beside.py",
        "def f(x):\n    return x\n",
        "def f(x):\n    return x + 1\n",
    ),
    "a module of the package that is named when it runs": (
        "import importlib\nNAME = 'hp.' + 'limits'\ndef h(x):\n    return importlib.import_module(NAME).LIMIT\n",
        LIMITS,
        PLAIN,
        "LIMIT = 5\n",
    ),
    "a method of a named tuple": (
        "from hp.limits import MADE\ndef h(x):\n    return MADE.half(x)\n",
        LIMITS,
        TUPLE.format("n // self.by"),
        TUPLE.format("n // self.by + 1"),
    ),
    "a method of a number": (
        "from hp.limits import Kind\ndef h(x):\n    return Kind(1).half(x)\n",
        LIMITS,
        NUMBER.format("n // 2"),
        NUMBER.format("n // 3"),
    ),
    "a method of a text": (
        "from hp.limits import MADE\ndef h(x):\n    return MADE.n()\n",
        LIMITS,
        TEXT.format(4),
        TEXT.format(5),
    ),
    "what a table has for what it lacks": (
        "from hp.limits import TABLE\ndef h(x):\n    return TABLE[x]\n",
        LIMITS,
        "class T(dict):\n    def __missing__(self, k):\n        return 4\nTABLE = T()\n",
        "class T(dict):\n    def __missing__(self, k):\n        return 5\nTABLE = T()\n",
    ),
    "the factory of a table": (
        "from hp.limits import TABLE\ndef h(x):\n    return TABLE[x]\n",
        LIMITS,
        "import collections\nTABLE = collections.defaultdict(lambda: 4)\n",
        "import collections\nTABLE = collections.defaultdict(lambda: 5)\n",
    ),
    "a method of what a deque holds": (
        "from hp.limits import ROW\ndef h(x):\n    return ROW[0].half(x)\n",
        LIMITS,
        "import collections\n" + TUPLE.format("n // 2") + "ROW = collections.deque([MADE])\n",
        "import collections\n" + TUPLE.format("n // 3") + "ROW = collections.deque([MADE])\n",
    ),
    "a bound method of a table": (
        "from hp.limits import get\ndef h(x):\n    return get(x)\n",
        LIMITS,
        "get = {1: 4}.get\n",
        "get = {1: 5}.get\n",
    ),
    "an attribute of a function": (
        "from hp.limits import f\ndef h(x):\n    return f(x)\n",
        LIMITS,
        "def f(x):\n    return f.n\nf.n = 4\n",
        "def f(x):\n    return f.n\nf.n = 5\n",
    ),
    "what goes by the name of another's function": (
        "from hp.limits import f\ndef h(x):\n    return f(x)\n",
        LIMITS,
        "import functools, statistics\n@functools.wraps(statistics.mean)\ndef f(x):\n    return 4\n",
        "import functools, statistics\n@functools.wraps(statistics.mean)\ndef f(x):\n    return 5\n",
    ),
    "a method that is chosen by types": (
        "from hp.limits import f\ndef h(x):\n    return f(x)\n",
        LIMITS,
        SINGLE.format("n // 2"),
        SINGLE.format("n // 3"),
    ),
    "a module beside installed ones": (
        "import clipper\ndef h(x):\n    return clipper.clip(x)\n",
        "site/clipper.py",
        "def clip(x):\n    return inner(x)\ndef inner(x):\n    return 4\n",
        "def clip(x):\n    return inner(x)\ndef inner(x):\n    return 5\n",
    ),
    "a module of an installed distribution": (
        "import inst\ndef h(x):\n    return inst.clip(x)\n",
        "site/inst/__init__.py",
        "def clip(x):\n    return 4\n",
        "def clip(x):\n    return 5\n",
    ),
    "the record of an installed distribution": (
        "import inst\ndef h(x):\n    return inst.clip(x)\n",
        "site/inst-1.0.dist-info/RECORD",
        "inst/__init__.py,,\ninst/deep.py,sha256=1,\n",
        "inst/__init__.py,,\ninst/deep.py,sha256=2,\n",
    ),
    "the record of what an installed distribution requires": (
        "def h(x):\n    from inst import clip\n    return clip(x)\n",
        "site/needed_by_it-2.0.dist-info/RECORD",
        "needed/__init__.py,sha256=1,\n",
        "needed/__init__.py,sha256=2,\n",
    ),
}
SITE = {
    "inst/__init__.py": "def clip(x):\n    return 4\n",
    "inst-1.0.dist-info/RECORD": "inst/__init__.py,,\n",
    "inst-1.0.dist-info/METADATA": "Name: inst\nVersion: 1.0\nRequires-Dist: needed.by_it (>=1)\n",
    "needed_by_it-2.0.dist-info/RECORD": "needed/__init__.py,,\n",
    "needed_by_it-2.0.dist-info/METADATA": "Name: needed-by-it\nVersion: 2.0\n",
}
ASK = (
    "import site, sys; sys.path.append('site'); known = site.getsitepackages(); site.getsitepackages = lambda: [*known, 'site']; "
)
ASK += "import hp.helper; from morok.prove.function_digest import code_of; print(code_of(hp.helper.h, 'hp.helper').digest)"


def digest(folder: Path) -> str:
    done = subprocess.run([sys.executable, "-B", "-c", ASK], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_what_a_function_refers_to_is_seen(name: str, tmp_path: Path) -> None:
    helper, edited, before, after = EDITS[name]
    (tmp_path / "hp").mkdir()
    (tmp_path / "hp/__init__.py").write_text("")
    (tmp_path / "hp/helper.py").write_text(helper)
    (tmp_path / "hp/kinds.py").write_text("class Box:\n    __slots__ = ('n',)\n    def __init__(self, n):\n        self.n = n\n")
    for file, text in SITE.items():
        (tmp_path / "site" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / file).write_text(text)
    (tmp_path / edited).write_text(before)
    first = digest(tmp_path)
    assert digest(tmp_path) == first, "another process"
    (tmp_path / edited).write_text(after)
    assert digest(tmp_path) != first


def test_folders_are_no_prefixes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module beside a package is not of the package, whatever its name begins with."""
    monkeypatch.setattr(distributions, "_PACKAGE", tmp_path / "pack")
    (tmp_path / "pack").mkdir()
    for name in ("pack/__init__", "pack/inner", "pack_and_more"):
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert distributions.moroks("pack.inner")
    assert not distributions.moroks("pack_and_more")


def test_python_s_own_modules_and_installed_ones() -> None:
    assert [m for m in ("os", "builtins", "collections.abc", "numpy", "pytest", "morok.errors") if distributions.pythons(m)] == [
        "os", "builtins", "collections.abc"
    ]  # fmt: skip
    assert [m for m in ("os", "numpy", "z3", "numpy.linalg", "morok", __name__) if distributions.installed(m)] == [
        "numpy", "z3", "numpy.linalg"
    ]  # fmt: skip
    assert distributions.identity("z3").files
