"""The digest of a function: another one wherever something that it refers to is edited, and equal in every process."""

from __future__ import annotations

import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from morok.prove import distributions, function_digest

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
    "a module imported in the body": (
        "def h(x):\n    import beside\n    return beside.K\n",
        "beside.py",
        "K = 1\n",
        "K = 2\n",
    ),
    "a module that a text names, to whatever function": (
        "import pkgutil\ndef h(x):\n    return pkgutil.resolve_name('beside:K')\n",
        "beside.py",
        "K = 1\n",
        "K = 2\n",
    ),
    "a module that a pickle names, in a table": (
        "import pickle\nT = [b'cbeside.deeper\\nK\\n.']\ndef h(x):\n    return pickle.loads(T[0])\n",
        "beside/deeper.py",
        "K = 1\n",
        "K = 2\n",
    ),
    "what a module imports that a text names": (
        "import pydoc\ndef h(x, at='hp.names.K'):\n    return pydoc.locate(at)\n",
        "beside.py",
        "K = 1\n",
        "K = 2\n",
    ),
    "a module of a package": (
        "import hp.limits\ndef h(x):\n    return hp.limits.LIMIT\n",
        LIMITS,
        PLAIN,
        "LIMIT = 5\n",
    ),
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
    "the names of parameters": (
        "from hp.limits import less\ndef h(x):\n    return less(a=x, b=1)\n",
        LIMITS,
        "def less(a, b):\n    return a - b\n",
        "def less(b, a):\n    return b - a\n",
    ),
    "a text in a generator": (
        "from hp.limits import f\ndef h(x):\n    return f(x)\n",
        LIMITS,
        "def f(n):\n    return ''.join('a' + t for t in n)\n",
        "def f(n):\n    return ''.join('b' + t for t in n)\n",
    ),
    "the kind of a method": (
        "from hp.limits import Known\ndef h(x):\n    return Known.n(x)\n",
        LIMITS,
        "class Known:\n    @staticmethod\n    def n(*a):\n        return len(a)\n",
        "class Known:\n    @classmethod\n    def n(*a):\n        return len(a)\n",
    ),
    "the end of a long pattern": (
        "from hp.limits import P\ndef h(x):\n    return P.match(x)\n",
        LIMITS,
        "import re\nP = re.compile('x' * 300 + 'a')\n",
        "import re\nP = re.compile('x' * 300 + 'b')\n",
    ),
    "the format of a struct": (
        "from hp.limits import S\ndef h(x):\n    return S.pack(x)\n",
        LIMITS,
        "import struct\nS = struct.Struct('<i')\n",
        "import struct\nS = struct.Struct('<b')\n",
    ),
    "the default of a context variable": (
        "from hp.limits import V\ndef h(x):\n    return V.get()\n",
        LIMITS,
        "import contextvars\nV = contextvars.ContextVar('V', default=4)\nV.set(6)\n",
        "import contextvars\nV = contextvars.ContextVar('V', default=5)\nV.set(6)\n",
    ),
    "the value of a context variable": (
        "from hp.limits import V\ndef h(x):\n    return V.get()\n",
        LIMITS,
        "import contextvars\nV = contextvars.ContextVar('V')\n",
        "import contextvars\nV = contextvars.ContextVar('V')\nV.set(6)\n",
    ),
    "what a thread has for itself": (
        "from hp.limits import L\ndef h(x):\n    return L.n\n",
        LIMITS,
        "import threading\nL = threading.local()\nL.n = 4\n",
        "import threading\nL = threading.local()\nL.n = 5\n",
    ),
    "what a weak reference is to": (
        "from hp.limits import R\ndef h(x):\n    return R().n\n",
        LIMITS,
        "import weakref\nfrom hp.kinds import Box\nclass B(Box):\n    pass\nb = B(4)\nR = weakref.ref(b)\n",
        "import weakref\nfrom hp.kinds import Box\nclass B(Box):\n    pass\nb = B(5)\nR = weakref.ref(b)\n",
    ),
    "the values of a table": (
        "from hp.limits import V\ndef h(x):\n    return [b.n for b in V]\n",
        LIMITS,
        "from hp.kinds import Box\nV = {1: Box(4)}.values()\n",
        "from hp.kinds import Box\nV = {1: Box(5)}.values()\n",
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
ASK = "import site, sys; sys.path.append('site'); old = site.getsitepackages(); site.getsitepackages = lambda: [*old, 'site']; "
ASK += (
    "import hp.helper; from morok.prove.function_digest import code_of; print(code_of(hp.helper.h, 'hp.helper').digest)"
)


def digest(folder: Path) -> str:
    done = subprocess.run([sys.executable, "-B", "-c", ASK], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.sampled(36)
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_what_a_function_refers_to_is_seen(name: str, tmp_path: Path) -> None:
    helper, edited, before, after = EDITS[name]
    (tmp_path / "hp").mkdir()
    (tmp_path / "hp/__init__.py").write_text("")
    (tmp_path / "hp/helper.py").write_text(helper)
    (tmp_path / "hp/kinds.py").write_text(
        "class Box:\n    __slots__ = ('n',)\n    def __init__(self, n):\n        self.n = n\n"
    )
    (tmp_path / "hp/names.py").write_text("from beside import K\n")
    for file, text in SITE.items():
        (tmp_path / "site" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / file).write_text(text)
    (tmp_path / edited).parent.mkdir(exist_ok=True)
    (tmp_path / edited).write_text(before)
    first = digest(tmp_path)
    assert digest(tmp_path) == first, "another process"
    (tmp_path / edited).write_text(after)
    assert digest(tmp_path) != first


@pytest.mark.parametrize("opaque", ["(n for n in [x])", "open(__file__)", "re.match('a', 'a')"])
def test_what_shows_nobody_what_it_holds_is_another_in_each_process(opaque: str) -> None:
    known: dict[str, Any] = {"__name__": "of_a_test", "re": re, "x": 4, "__file__": __file__}
    exec(f"HELD = {opaque}\ndef h():\n    return HELD", known)
    found, again = (function_digest.code_of(known["h"], "of_a_test") for _ in range(2))
    assert found == again
    assert len(found.closed) == 1
    with pytest.MonkeyPatch.context() as other:
        other.setattr(function_digest, "_THIS_PROCESS", "another")
        assert function_digest.code_of(known["h"], "of_a_test").digest != found.digest


@pytest.mark.parametrize(
    "plain",
    [
        "object()",
        "threading.Lock()",
        "sys.__stderr__",
        "len",
        "functools.lru_cache(f)",
        "np.add",
        "re.compile('a')",
        "T",
        "A()",
    ],
)
def test_what_holds_nothing_is_the_same_in_each_process(plain: str) -> None:
    known: dict[str, Any] = {
        "__name__": "of_a_test",
        **{m: __import__(m) for m in ("re", "sys", "threading", "functools")},
    }
    text = "import abc, typing, numpy as np\nT = typing.TypeVar('T')\ndef f(n): return n\nclass A(abc.ABC): pass\n"
    exec(f"{text}HELD = {plain}\ndef h():\n    return HELD", known)
    with pytest.MonkeyPatch.context() as here:
        here.setitem(sys.modules, "of_a_test", types.ModuleType("of_a_test"))
        vars(sys.modules["of_a_test"]).update(known)
        assert function_digest.code_of(known["h"], "of_a_test").closed == ()


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


# Ways in which a function `f` reaches the constant LIMIT of a module `limits_of_a_test`, or what it says of itself.
REACHING = {
    "a default argument": "def f(m=limits): return m.LIMIT",
    "a closure": "f = (lambda m: lambda: m.LIMIT)(limits)",
    "an attribute of a class": "class H:\n    m = limits\ndef f(): return H.m.LIMIT",
    "a table": "T = {1: limits}\ndef f(): return T[1].LIMIT",
    "an object": "import types\nH = types.SimpleNamespace(m=limits)\ndef f(): return H.m.LIMIT",
    "what a function returns": "def g(): return limits\ndef f(): return g().LIMIT",
    "a getter": "import operator\nget = operator.attrgetter('LIMIT')\ndef f(): return get(limits)",
    "a partial call": "import functools\nf = functools.partial(getattr, limits, 'LIMIT')",
    "the modules that are loaded": "import sys\ndef f(): return sys.modules['limits_of_a_test'].LIMIT",
    "a pattern": "import types\ndef f():\n    match limits:\n        case types.ModuleType(LIMIT=n): return n",
    "a format": "def f(): return '{0.LIMIT}'.format(limits)",
    "a name that is made": "def f(): return getattr(limits, 'LIM' + str('IT'))",
    "an attribute that is made": (
        "class L:\n    def __getattr__(self, n): return getattr(limits, n)\nh = L()\ndef f(): return h.LIMIT"
    ),
    "the names of a module": "def f(): return limits.__dict__['LIM' + str('IT')]",
    "its own names": "LIMIT = limits.LIMIT\ndef f(): return globals()['LIM' + str('IT')]",
    "Python's names": "import builtins\nbuiltins.LIMIT_OF_A_TEST = limits.LIMIT\ndef f(): return LIMIT_OF_A_TEST",
    "a docstring": "def f(): return f.__doc__\nf.__doc__ = str(limits.LIMIT)",
    "an annotation": "def f(): return f.__annotations__['x']\nf.__annotations__ = {'x': limits.LIMIT}",
    "an annotation of a class": (
        "class K:\n    x: int\nK.__annotations__['x'] = limits.LIMIT\ndef f(): return K.__annotations__['x']"
    ),
    "its name": "def f(): return f.__qualname__\nf.__qualname__ = str(limits.LIMIT)",
    "a class that is found from above": "class A: pass\nclass B(A): n = limits.LIMIT\ndef f(): return A.__subclasses__()[0].n",
    "names that are copied from Python's": (
        "import math\ns = dict(vars(math))\nexec(f'def g(): return {limits.LIMIT}', s)\nf = s['g']"
    ),
    "a class of such names": (
        "import math\ns = dict(vars(math))\nexec(f'class G: n = {limits.LIMIT}', s)\nG = s['G']\ndef f(): return G.n"
    ),
    "a module that is called as one of Python's": (
        "import types\nm = types.ModuleType('math')\nm.n = limits.LIMIT\ndef f(): return m.n"
    ),
}


@pytest.mark.parametrize("text", REACHING.values(), ids=REACHING.keys())
def test_however_code_reaches_a_constant_it_counts(text: str) -> None:
    def found(limit: int) -> tuple[Any, str]:
        limits.LIMIT = limit  # type: ignore[attr-defined]
        known: dict[str, Any] = {"__name__": "of_a_test", "limits": limits}
        exec(text, known)
        return known["f"](), function_digest.code_of(known["f"], "of_a_test").digest

    limits = types.ModuleType("limits_of_a_test")
    with pytest.MonkeyPatch.context() as here:
        here.setitem(sys.modules, "limits_of_a_test", limits)
        first = found(100)
        assert found(100) == first
        assert int(found(60)[0]) == 60
        assert found(60)[1] != first[1]


def test_what_nobody_has_gone_through_is_never_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_digest, "_MOST", 100)
    known: dict[str, Any] = {"__name__": "of_a_test"}
    exec("TABLE = [(i, i) for i in range(200)]\ndef f(n): return TABLE[n]", known)
    found, again = (function_digest.code_of(known["f"], "of_a_test") for _ in range(2))
    assert found.digest != again.digest
    assert found.closed == ("more than 100 objects",)


HOSTILE = {
    "a table that is asked for attributes": "class H(dict):\n    __getattr__ = dict.__getitem__",
    "an attribute that is always another object": "class H:\n    def __getattr__(self, n): return H()",
    "an error": "class H:\n    def __getattribute__(self, n): raise KeyError(n)\n    def __repr__(self): raise KeyError",
    "a class of such": "class M(type):\n    def __getattribute__(self, n): raise KeyError(n)\nclass H(metaclass=M): pass",
    "what makes it anew": "import collections\nclass H(collections.deque):\n    def __reduce_ex__(self, n): return RAN.append(n)",
    "a module that makes what it lacks": (
        "import types\nclass H(types.ModuleType):\n    def __getattr__(self, n): return RAN.append(n)\n"
        "    def __init__(self): super().__init__('h')"
    ),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_code_is_run_for_the_digest(text: str) -> None:
    known: dict[str, Any] = {"__name__": "of_a_test", "RAN": []}
    exec(
        f"{text}\nHELD = H()\ntry: SET = {{(1, HELD)}}\nexcept TypeError: SET = ()\ndef f(): return HELD.LIMIT, SET",
        known,
    )
    found, again = (function_digest.code_of(known["f"], "of_a_test") for _ in range(2))
    assert found == again
    assert not known["RAN"]


# Code that calls what others have written, with the module or class and the name under which something else is put.
PATCHED = {
    "a function of Python's": ("import math\ndef h(x): return math.floor(x)", "math", "floor"),
    "one in Python text": ("import functools\ndef h(x): return functools.reduce(max, x)", "functools", "reduce"),
    "one of a module that is imported in the body": (
        "def h(x):\n    import math\n    return math.floor(x)",
        "math",
        "floor",
    ),
    "a method": ("from fractions import Fraction\ndef h(x): return Fraction(x) + 1", "fractions.Fraction", "__add__"),
    "a method of a class in a module": (
        "import fractions\ndef h(x): return fractions.Fraction(x) + 1",
        "fractions.Fraction",
        "__add__",
    ),
    "one of an installed module": ("import numpy\ndef h(x): return numpy.add(x, 1)", "numpy", "add"),
    "one of Morok's": ("import morok.names\ndef h(x): return morok.names.readable(x)", "morok.names", "readable"),
}


@pytest.mark.parametrize(("text", "home", "name"), PATCHED.values(), ids=PATCHED.keys())
def test_what_is_put_in_the_place_of_others_code_counts(
    text: str, home: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = types.ModuleType("patching")
    exec(text, vars(made))
    monkeypatch.setitem(sys.modules, "patching", made)
    found = function_digest.code_of(made.h, "patching").digest
    seen = {found}
    for k in (1, 2):
        exec(f"def put(*given): return {k}", vars(made))
        monkeypatch.setattr(f"{home}.{name}", made.put)
        seen.add(function_digest.code_of(made.h, "patching").digest)
    assert len(seen) == 3
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "patching", made)
    assert function_digest.code_of(made.h, "patching").digest == found
