"""Contracts are tested before rules that rely on them may run; what helpers do wrong is found, and ends no test."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

import morok
from morok import UOp, dtypes
from morok.dsl.check import check_text
from morok.errors import UnprovedRuleError, UntrustedHelperError
from morok.ir.op import Op
from morok.prove import confined, promises
from morok.prove.api import exit_status, prove
from morok.prove.contract_state import Tested as State
from morok.tools.cli import main

HALF = (
    "extern f(n: const) -> (h: const)?\n    requires n % 2 == 0\n    ensures n == 2 * h\n",
    "r: Mul(x: index, @const(c)) if c % 2 == 0 let h = f(c) => Mul(Mul(x, 2), h)",
)
SPLIT = (
    "extern f(x: index, d: const) -> (q: index, r: index)?\n    requires d > 0\n    ensures x == d * q + r\n",
    "r: Idiv(x: index, @const(d)) if d > 0 let (q, r) = f(x, d) => Add(q, Idiv(r, d))",
)
SAME = ("extern f(x: any) -> (y: any)\n    ensures y == x\n", "r: Neg(x: (i32 | f32)) let y = f(x) ~> Neg(y)")
LANES = (
    "extern f(at: seq) -> (b: seq)\n    ensures len(b) == len(at) and all(b[k] == at[k] + 1 for k in 0..len(at))\n",
    "r: Gep(x, ls) let b = f(ls) ~> Gep(x, b)",
)
ANY = (
    "extern f(n: const, k: const) -> (h: const)\n    ensures h >= n\n",
    "r: Mul(Add(x: i32, @const(c)), @const(d)) let h = f(c, d) ~> x",
)

ABOUT = (
    "extern f(x: i32, d: const) -> (y: i32)\n    requires {}\n    ensures {}\n",
    "r: Add(x: i32, @const(d)) if vmin(x) > 3 let y = f(x, d) ~> y",
)

PART = ("extern f(x: i32) -> (y: i32)?\n", "r: Neg(x: i32) let y = f(x) => Add(Neg(x), Mul(y, 0))")


def about(ensures: str, requires: str = "d == d") -> tuple[str, str]:
    """A helper whose contract states facts about what it is given and returns."""
    return ABOUT[0].format(requires, ensures), ABOUT[1]


@pytest.fixture
def tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Callable[..., State]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    name = f"of_{zlib.crc32(request.node.name.encode())}"
    monkeypatch.delitem(sys.modules, name, raising=False)

    def run(pack: tuple[str, str], body: str, mark: str = "", group: str = "") -> State:
        (tmp_path / f"{name}.py").write_text(
            f"import morok\nfrom morok import UOp, dtypes\ncount = 0\n\n@morok.helper{mark}\n{body}\n"
        )
        rules = list(
            check_text(f'helpers "{name}"\n{pack[0]}\ngroup g "d"\n{group}\n{pack[1]}\n    "a rule"\n').rules()
        )
        return promises.of_rules(rules, trust_helpers=True)[id(rules[0])]

    return run


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    ("pack", "body"),
    [
        (HALF, "def f(n): return n // 2"),
        (HALF, "def f(n): return n // 2 if n % 3 else None"),
        (SPLIT, "def f(x, d): return x // d, x % d"),
        (SPLIT, "def f(x, d): return UOp.const(0), x"),
        (SPLIT, "def f(x, d): return (x.src[0], UOp.const(0)) if x.op is morok.Op.Mul and x.src[1] is UOp.const(d) else None"),
        (SAME, "def f(x): return x"),
        (SAME, "def f(x): return -(-x)"),
        (LANES, "def f(at): return tuple(a + 1 for a in at)"),
        (LANES, "def f(at): return [a + 1 for a in at]"),
        (ANY, "def f(n, k): return n + abs(k)"),
        (about("vmin(y) >= vmin(x) and vmax(y) == vmax(x)"), "def f(x, d): return x"),
        (about("dtype(y) == dtype(x) and dtype(y) == i32 and bits(dtype(y)) == 32"), "def f(x, d): return x"),
        (about("not free_of(y, x) or defined(y) == defined(x)"), "def f(x, d): return x"),
        (about("lanes(y) == lanes(x) and safe_cast(dtype(y), i64)"), "def f(x, d): return x + 0"),
        (about("y >= 0 and vmin(y) > 3", "vmin(x) > 3"), "def f(x, d): return x if x.vmin > 3 else UOp.const(-1, x.dtype)"),
        (about("vmax(x) - vmin(x) >= 0"), "def f(x, d): return x"),
        (PART, "def f(x): return x if any(n.op is morok.Op.Load for n in x.toposort()) else None"),
        (PART, "def f(x): return x.src[0] if x.op is morok.Op.Mul else None"),
    ],
)  # fmt: skip
def test_contracts_that_hold(tested: Callable[..., State], pack: tuple[str, str], body: str) -> None:
    found = tested(pack, body)
    assert found.state == "tested", found.message
    assert found.calls >= 1000
    assert str(found).startswith("tested (1,")


@pytest.mark.sampled(28)
@pytest.mark.parametrize(
    ("pack", "body", "said"),
    [
        (HALF, "def f(n): return 7", "breaks what it ensures"),
        (HALF, "def f(n):\n    global count\n    count += 1\n    return n // 2 + (count % 50 == 0)", "f "),
        (HALF, "def f(n): return n // 2 + (n == 123456)", "n = 123456"),
        (PART, "def f(x): return next((n for n in x.src[1:] if n.op is morok.Op.Load), None)", "y has no value where"),
        (PART, "def f(x): return x.src[1] if x.op is morok.Op.Where else None", "y has no value where"),
        (HALF, "def f(n): return n // 2 if n < 2**63 - 2 else 0", "breaks what it ensures"),
        (HALF, "def f(n): return n // 2 if n else 1", "f(n = 0)"),
        (HALF, "def f(n): return int(n / 2)", "breaks what it ensures"),
        (HALF, "def f(n): return str(n // 2)", "for `h`, not a number"),
        (HALF, "def f(n): return UOp.const(n // 2)", "for `h`, not a number"),
        (HALF, "def f(n): return n // 2, 0", "for `h`, not a number"),
        (HALF, "def f(n): raise ValueError('no')", "raises ValueError: no"),
        (HALF, "def f(n): raise SystemExit(0)", "raises SystemExit"),
        (HALF, "def f(n): raise KeyboardInterrupt", "raises KeyboardInterrupt"),
        (HALF, "def f(n): return f(n)", "raises RecursionError"),
        (HALF, "def f(n):\n    import os\n    os._exit(0)", "ended the process, at f(n = "),
        (HALF, "def f(n):\n    import os\n    os.abort()", "ended the process, at f(n = "),
        (HALF, "def f(n):\n    import os\n    os.kill(os.getpid(), 9)", "ended the process, at f(n = "),
        (HALF, "def f(n):\n    import os\n    os.kill(0, 9)", "ended the process, at f(n = "),
        (HALF, "def f(n): return len(bytearray(4 << 30)) and n // 2", "runs out of memory"),
        (HALF, "def f(n):\n    while True: print('x' * 1000)", "printed more than 1 MB"),
        (HALF, "def f(n):\n    while n is not None: pass", "did not return within"),
        (HALF, "def f(n):\n    import time\n    time.sleep(1000)", "did not return within"),
        (SPLIT, "def f(x, d): return x // d, x", "breaks what it ensures"),
        (SPLIT, "def f(x, d): return x // d", "not 2 results"),
        (SPLIT, "def f(x, d): return x // d, x % d, x", "returns 3 results, not 2"),
        (SPLIT, "def f(x, d): return x // d, (x % d).cast(dtypes.i32)", "for `r`, not a node of index"),
        (SPLIT, "def f(x, d): return 0, x", "for `q`, not a node"),
        (SPLIT, "def f(x, d):\n    q = x // d\n    return (q, x % d) if d != 64 else (q, x)", "d = 64"),
        (SAME, "def f(x): return None", "declined"),
        (SAME, "def f(x): return x if x.dtype.count == 1 else x + x", "breaks what it ensures"),
        (SAME, "def f(x): return x if x.dtype is dtypes.i32 else -x", "breaks what it ensures"),
        (SAME, "def f(x): return x if x.op is not morok.Op.Const else x + x", "breaks what it ensures"),
        (SAME, "def f(x): return x.cast(dtypes.i64)", "for `y`, not a node of"),
        (LANES, "def f(at): return at", "breaks what it ensures"),
        (LANES, "def f(at): return tuple(a + 1 for a in at) if len(at) < 4 else ()", "breaks what it ensures"),
        (LANES, "def f(at): return tuple(a + 1 for a in at) if at else (0,)", "f(at = ())"),
        (LANES, "def f(at):\n    at.append(1)\n    return at", "f "),
        (LANES, "def f(at): return [None] * (1 << 60)", "f "),
        (LANES, "def f(at): return tuple(a + 1 for a in at) if len(at) < 23 else (0,) * len(at)", "breaks what it ensures"),
        (ANY, "def f(n, k): return n + k", "breaks what it ensures"),
        (about("vmin(y) >= 0"), "def f(x, d): return x", "breaks what it ensures"),
        (SPLIT, "def f(x, d): return UOp.range(9, 77) * 0, x", "hangs on"),
        (about("y >= 0"), "def f(x, d): return UOp.var('new', dtypes.i32) if x.dtype.count == 1 else x * 0", "hangs on new"),
        (about("vmin(y) == vmin(x)"), "def f(x, d): return x.vmin + x * 0 if x.op is not morok.Op.Add else x * x", "breaks"),
        (about("dtype(y) == index"), "def f(x, d): return x", "breaks what it ensures"),
        (about("lanes(y) == 1"), "def f(x, d): return x", "breaks what it ensures"),
        (about("vmin(y) > 3", "vmin(x) > 3"), "def f(x, d): return x - 1000", "breaks what it ensures"),
        (about("rank(x) > 0"), "def f(x, d): return x", "breaks what it ensures"),
        (ANY, "def f(n, k):\n    import random\n    return n + random.randrange(1000)", "is not pure"),
    ],
)  # fmt: skip
def test_contracts_that_do_not_hold(
    tested: Callable[..., State], monkeypatch: pytest.MonkeyPatch, pack: tuple[str, str], body: str, said: str
) -> None:
    monkeypatch.setattr(confined, "PATIENCE", 4.0)
    found = tested(pack, body)
    assert found.state == "false", found
    assert said in found.message
    assert len(found.message) < 4000


BEYOND = "UOp.new(morok.Op.DefineGlobal, (), 7, dtypes.i32.ptr(1)).index(UOp.const(5))"
FOLD = "UOp.range(9, 7).cast(dtypes.i32).reduce(morok.Op.Add, UOp.range(9, 7))"
FOLDED = f"(arguments=lambda rng: [({FOLD}, 1)] * 99)"
NOBODY = "def f(x, d): return UOp.var('nobody', dtypes.i32)"


@pytest.mark.parametrize(
    ("ensures", "body", "mark", "group", "on"),
    [
        ("y == y", f"def f(x, d): return {BEYOND}.load() + d", "", "", "Load"),
        ("len(axes(y)) == 0", NOBODY, "", "", "nobody"),
        ("y == y", NOBODY.replace("d)", "d, plan)"), "(context=list)", "@context Plan;\n", "nobody"),
        ("y == y", "def f(x, d): return x if x.op is not morok.Op.Reduce else x.src[0]", FOLDED, "", "Range"),
        (
            "y == y",
            "def f(x, d): return x if x.op is not morok.Op.Reduce else UOp.new(x.op, x.src, morok.Op.Max)",
            FOLDED,
            "",
            "",
        ),
    ],
)
def test_a_result_hangs_on_what_it_was_given(
    tested: Callable[..., State], ensures: str, body: str, mark: str, group: str, on: str
) -> None:
    found = tested(about(ensures), body, mark, group)
    assert found.state == ("false" if on else "tested"), found
    assert not on or re.search(f"for `y`, which hangs on .*{on}.* that it was not given", found.message)


@pytest.mark.long
@pytest.mark.parametrize(
    ("pack", "body", "said"),
    [
        (HALF, "def f(n): return None", "answered 0 of "),
        (HALF, "def f(n): return n // 2 if n == 10**9 + 8 and count else None", "declined the others"),
        (
            (HALF[0].replace("n % 2 == 0", "n == 1000 * 1001"), HALF[1].replace("c % 2 == 0", "c == 1000 * 1001")),
            "def f(n): return n // 2",
            "satisfy what it requires",
        ),
    ],
)
def test_what_no_calls_show_is_untested(
    tested: Callable[..., State], pack: tuple[str, str], body: str, said: str
) -> None:
    found = tested(pack, body)
    assert found.state == "untested", found
    assert said in found.message
    assert "@morok.helper(arguments=..)" in found.message


@pytest.mark.long
def test_arguments_and_a_context_of_the_helpers_own(tested: Callable[..., State]) -> None:
    rare = (HALF[0].replace("n % 2 == 0", "n % 4096 == 1000"), HALF[1].replace("c % 2 == 0", "c % 4096 == 1000"))
    makes = "(arguments=lambda rng: [(4096 * rng.randrange(9000) + 1000,)])"
    assert tested(rare, "def f(n): return n // 2", makes).state == "tested"
    found = tested(rare, "def f(n): return n // 2 + (n > 4096 * 8000)", makes)
    assert found.state == "false"
    assert tested(HALF, "def f(n): return n // 2", "(arguments=lambda rng: [3])").state in ("tested", "false")
    context = "@context Plan;\n"
    assert "takes a context" in tested(HALF, "def f(n, plan): return n // 2", "", context).message
    assert tested(HALF, "def f(n, plan): return n // 2 + len(plan)", "(context=list)", context).state == "tested"
    assert tested(HALF, "def f(n, plan): return n // 2 + len(plan)", "(context=lambda: [1])", context).state == "false"


@pytest.mark.long
def test_a_helper_that_may_decline_and_never_does_is_said(tested: Callable[..., State]) -> None:
    assert "may decline (`?`), and never did" in tested(HALF, "def f(n): return n // 2").message


WHOLE = (
    "extern f(r: index) -> (h: index)?\n    ensures counts(h, r)\n",
    "r: r @ Range { end: _e: index, .. } let h = f(r) => h",
)
DIGIT = (
    "extern f(r: index) -> (h: index, k: int)?\n    ensures counts(h, r, k)\n",
    "r: r @ Range { end: @const(n): index, .. } let (h, k) = f(r) => Mod(Idiv(h, k), n)",
)
INDICES = """
def f(r):
    if not morok.ir.launch.launched(r) or r.src[0].op is not morok.Op.Const:
        return None
    def index(n, name):
        return UOp.new(morok.Op.Special, (UOp.const(n),), name)
    n = int(r.src[0].arg)
    return {result}
"""


@pytest.mark.parametrize(
    ("pack", "result", "state"),
    [
        (WHOLE, "index(n, f'gidx{r.arg[0]}')", "tested"),
        (WHOLE, "index(n, 'gidx0')", "false"),
        (WHOLE, "index(n, f'gidx{r.arg[1].name}')", "false"),  # two ranges of one kind
        (WHOLE, "index(n, f'gidx{r.arg[0] // 2}')", "false"),  # ranges of numbers beside each other
        (WHOLE, "index(n, f'gidx{min(r.arg[0], 9)}')", "false"),  # ranges of high numbers
        (DIGIT, "(index(n, f'gidx{r.arg[0]}'), 1)", "tested"),
        (DIGIT, "(index(4 * n, f'gidx{n}'), 4)", "false"),
    ],
)
def test_two_ranges_have_hardware_indices_of_their_own(
    tested: Callable[..., State], pack: tuple[str, str], result: str, state: str
) -> None:
    found = tested(pack, INDICES.format(result=result).strip())
    assert found.state == state, found.message
    assert state == "tested" or "of one kernel get" in found.message


PACK = """helpers "{}"

{}
group g "one"

r: Mul(x: index, @const(c)) if c % 2 == 0 let h = f(c) => Mul(Mul(x, 2), h)
    "halved"
"""
GOOD = (
    "import morok\n\nSTEP = 2\n\ndef inner(n):\n    return n // STEP\n\n@morok.helper\ndef f(n):\n    return inner(n)\n"
)


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> tuple[Path, Path, str]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    name = f"pack_of_{zlib.crc32(request.node.name.encode())}"
    module = tmp_path / f"{name}.py"
    module.write_text(GOOD)
    rules = tmp_path / "mine.rules"
    rules.write_text(PACK.format(name, HALF[0]))
    return rules, module, name


def test_a_proof_over_an_untested_contract_is_not_usable(
    pack: tuple[Path, Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    rules, module, name = pack
    module.write_text(GOOD.replace("n // STEP", "7"))
    (found,) = prove(rules)
    assert (found.verdict, found.contracts, found.usable) == ("proved", "untested", False)
    assert exit_status([found]) == 3
    assert main(["prove", str(rules)]) == 3
    assert "contracts: untested" in capsys.readouterr().out
    assert name not in sys.modules
    with pytest.raises(UntrustedHelperError, match="contracts are untested"):
        morok.load_rules(rules)
    for form in ("junit", "sarif", "github"):
        assert main(["prove", f"--format={form}", str(rules)]) == 3
        assert "untested" in capsys.readouterr().out
    assert main(["prove", "--trust-helpers", "--json", str(rules)]) == 1
    (row,) = json.loads(capsys.readouterr().out)["rules"]
    assert (row["verdict"], row["contracts"]) == ("broken", "false")
    assert "h = 7" in row["message"]
    with pytest.raises(UnprovedRuleError, match=r"relies on a contract that is not true\n.*h = 7"):
        morok.load_rules(rules, trust_helpers=True)
    assert name not in sys.modules


NARROW = """
@morok.helper
def f(x):
    return morok.UOp.const(x.arg, x.dtype.scalar()) if x.op is morok.Op.Const else x
"""


@pytest.mark.long
def test_a_result_of_other_lanes_than_its_place_has_makes_no_node(pack: tuple[Path, Path, str]) -> None:
    """The value in each lane is as the contract says, how many lanes there are is not."""
    rules, module, name = pack
    module.write_text(f"import morok\n{NARROW}")
    extern = "extern f(x: i32) -> (y: i32)\n    ensures y == x\n"
    rules.write_text(f'helpers "{name}"\n{extern}\ngroup g\n\nr: Neg(Neg(x: i32)) let y = f(x) ~> y\n')
    loaded = morok.load_rules(rules, trust_helpers=True)
    one, four = UOp.const(3, dtypes.i32), UOp.const(3, dtypes.i32.vec(4))
    assert morok.rewrite(UOp.new(Op.Neg, (UOp.new(Op.Neg, (one,)),)), loaded) is one
    assert morok.rewrite(UOp.new(Op.Neg, (UOp.new(Op.Neg, (four,)),)), loaded).dtype is four.dtype


@pytest.mark.long
def test_rules_tested_together_are_tested_each(
    pack: tuple[Path, Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    rules, _, name = pack
    other = 'q: Sub(x: index, @const(c)) if c % 2 == 0 let h = f(c) => Sub(Sub(x, h), h)\n    "and taken away"\n'
    rules.write_text(rules.read_text() + other)
    assert main(["prove", "--only", "*.r", str(rules)]) == 3
    assert main(["prove", "--trust-helpers", "--only", "*.r", str(rules)]) == 0
    assert main(["prove", "--only", "*.r", str(rules)]) == 0
    assert main(["prove", str(rules)]) == 3, "nobody tested what the other rule calls it with"
    assert main(["prove", "--trust-helpers", str(rules)]) == 0
    assert main(["prove", "--only", "*.q", str(rules)]) == 0
    capsys.readouterr()
    main(["explain", "mine.g.q", "--rules", str(rules)])
    assert "contracts: tested (1,0" in capsys.readouterr().out
    assert name not in sys.modules


def test_a_tested_contract_is_remembered_until_its_code_changes(
    pack: tuple[Path, Path, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, module, name = pack
    assert main(["prove", "--trust-helpers", str(rules)]) == 0
    assert "contracts: tested (1,000 calls)" in capsys.readouterr().out
    assert main(["prove", str(rules)]) == 0, "the files are those that were tested"
    monkeypatch.setattr(promises, "confined", None)  # nothing is tested again
    loaded = morok.load_rules(rules, trust_helpers=True)
    x = UOp.var("x", dtypes.index, 0, 9)
    assert loaded["g.r"].apply(x * 6) is UOp.new(Op.Mul, (x * 2, UOp.const(3)))
    monkeypatch.undo()
    monkeypatch.syspath_prepend(module.parent)
    monkeypatch.setenv("MOROK_CACHE_DIR", str(module.parent / "cache"))
    for old, new in (("STEP = 2", "STEP = 3"), ("n // STEP", "n // STEP + 1")):
        module.write_text(GOOD.replace(old, new))
        # Python takes a text of the same second for the same
        shutil.rmtree(module.parent / "__pycache__", ignore_errors=True)
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
        assert main(["prove", str(rules)]) == 1, "its text is another, and this process trusts it by now"
        with pytest.raises(UnprovedRuleError, match="is not true"):
            morok.load_rules(rules, trust_helpers=True)


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    ["STEP = 3", "inner = lambda n: 7", "f = morok.helper(lambda n: 7)", "f.__code__ = (lambda n: 7).__code__"],
)
def test_what_changes_between_test_and_use_does_not_run(pack: tuple[Path, Path, str], change: str) -> None:
    rules, _, name = pack
    loaded = morok.load_rules(rules, trust_helpers=True)
    exec(change, vars(sys.modules[name]))
    with pytest.raises(UnprovedRuleError, match="not the function whose contract was tested"):
        loaded["g.r"].apply(UOp.var("x", dtypes.index, 0, 9) * 6)
    with pytest.raises(UnprovedRuleError, match="contract"):
        morok.load_rules(rules, trust_helpers=True)


@pytest.mark.long
def test_a_constant_that_is_another_in_each_process(pack: tuple[Path, Path, str]) -> None:
    rules, module, _ = pack
    module.write_text(
        GOOD.replace("STEP = 2\n", "import os\nSTEP = 2\nPROCESS = os.getpid()\n").replace(
            "// STEP", "// STEP + 0 * PROCESS"
        )
    )
    loaded = morok.load_rules(rules, trust_helpers=True)  # tested again, as this process has it
    assert loaded["g.r"].apply(UOp.var("x", dtypes.index, 0, 9) * 6) is not None


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "end", ["import os\nos._exit(3)\n", "raise SystemExit(3)\n", "1 // 0\n", "del f\n", "f = print\n"]
)
def test_modules_that_do_not_survive_their_import(pack: tuple[Path, Path, str], end: str) -> None:
    rules, module, name = pack
    module.write_text(GOOD + (f"exec({end!r})\n"))
    with pytest.raises(UnprovedRuleError, match="is not true"):
        morok.load_rules(rules, trust_helpers=True)
    assert name not in sys.modules


@pytest.mark.long
def test_rules_of_a_pack_that_name_morok_s_own_helpers_are_tested_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    text = """helpers "morok.ir.sums"

extern scaled(x: index, c: const) -> (s: index)
    ensures s == x * c{}

group g "one"

r: Mul(x @ Add(_a: index, _b), @const(c)) let s = scaled(x, c) ~> {}
    "into each term"
"""
    rules = tmp_path / "mine.rules"
    code = (
        "import morok, sys\nfrom pathlib import Path\nfrom morok.prove.api import prove\n"
        "(found,) = prove(Path(sys.argv[1]))\nprint(found.verdict, found.contracts)\nmorok.load_rules(sys.argv[1])\n"
    )

    def told(ensured: str, target: str) -> tuple[str, str]:
        """The verdict on the rules, and how loading them ends, in a process in which nothing else is loaded."""
        rules.write_text(text.format(ensured, target))
        done = subprocess.run([sys.executable, "-c", code, str(rules)], capture_output=True, text=True, check=False)
        return done.stdout.strip(), done.stderr

    assert told("", "s") == ("proved tested (1,000 calls)", "")
    said, ended = told(" + 1", "Sub(s, 1)")
    assert said == "broken false"
    assert "UnprovedRuleError" in ended
    assert "is not true" in ended


FOREIGN = """dialect saturating
helpers "{}"

extern plus(x: sat, c: const) -> (y: sat)
    ensures true

group g "one"

r: Add(Add(x, @const(c)), @zero) if c >= 0 let y = plus(x, c) ~> Add(Add(x, c), 0)
    "as it was"
"""
PLUS = 'import morok\nimport {0}\n\n@morok.helper{1}\ndef plus(x, c):\n    return ("add", x, ("const", {0}.clip(c)))\n'


@pytest.mark.long
def test_nodes_of_foreign_dialects_and_code_of_other_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    importlib.import_module("foreign")
    beside = tmp_path / "clipping_of_these_tests.py"
    beside.write_text("K = 100\n\ndef clip(v):\n    return max(-K, min(K, v))\n")
    module, rules = tmp_path / "foreign_of_these_tests.py", tmp_path / "mine.rules"
    rules.write_text(FOREIGN.format(module.stem))
    module.write_text(PLUS.format(beside.stem, ""))
    (found,) = prove(rules, trust_helpers=True, jobs=1)
    assert (found.verdict, found.contracts) == ("proved", "untested"), "nobody knows how nodes of that dialect are made"
    assert "arguments=.." in found.message
    module.write_text(PLUS.format(beside.stem, '(arguments=lambda rng: [(("var", "x"), rng.randint(-9, 9))])'))
    (found,) = prove(rules, trust_helpers=True, jobs=1)
    assert found.contracts == "tested (1,000 calls)"
    assert prove(rules, jobs=1)[0].usable
    beside.write_text(beside.read_text().replace("100", "99"))
    assert prove(rules, jobs=1)[0].contracts == "untested", "what it calls is another"


@pytest.mark.long
def test_helpers_of_a_rule_about_axes_are_called_where_it_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nobody trusts them no graph can be tried, and what is shown of every size does not count; nor is that remembered."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "turned_here.py").write_text(
        "import morok\n\n@morok.helper\ndef f(ls):\n    return tuple(reversed(ls))\n"
    )
    pack = tmp_path / "turned.rules"
    pack.write_text(
        'helpers "turned_here"\nextern f(ls: seq) -> (b: seq)\n'
        "    ensures b == [ls[len(ls) - 1 - k] for k in 0..len(ls)]\n"
        'group g "a group"\nr: Contract { src: Gep { vector: x: i32, indices: ls }, axes: a } let b = f(ls)\n'
        "    ~> Contract { src: Gep(Gep(x, b), [len(b) - 1 - k for k in 0..len(b)]), axes: a }\n"
    )
    (found,) = prove([pack])
    assert (found.verdict, "to try it" in found.message) == ("unknown", True), found.message
    (found,) = prove([pack], trust_helpers=True)
    assert found.verdict == "proved", found.message
    assert found.contracts.startswith("tested")


def forgotten(module: Path) -> None:
    """Let Python import a module of these tests anew."""
    shutil.rmtree(module.parent / "__pycache__", ignore_errors=True)
    sys.modules.pop(module.stem, None)
    importlib.invalidate_caches()


@pytest.mark.long
def test_code_that_is_reached_dynamically_is_tested_again_when_it_changes(
    pack: tuple[Path, Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    rules, module, name = pack
    beside = module.with_name(f"{name}_named.py")
    beside.write_text("def inner(n):\n    return n // 2\n")
    module.write_text(
        f"import importlib, morok\n\n@morok.helper\ndef f(n):\n    return importlib.import_module('{beside.stem}').inner(n)\n"
    )
    assert main(["prove", "--trust-helpers", str(rules)]) == 0
    assert main(["prove", str(rules)]) == 0
    beside.write_text("def inner(n):\n    return n // 2 + (n == 6)\n")
    forgotten(beside)
    assert main(["prove", str(rules)]) == 3, "nobody tested this code"
    with pytest.raises(UnprovedRuleError, match="is not true"):
        morok.load_rules(rules, trust_helpers=True)
    capsys.readouterr()


@pytest.mark.long
def test_the_class_of_a_context_counts_wherever_it_is_defined(pack: tuple[Path, Path, str]) -> None:
    """A context is asked by no name in the helper: its class counts apart."""
    rules, module, name = pack
    beside = module.with_name(f"{name}_around.py")
    of = "    @classmethod\n    def of(cls, root):\n        return cls()\n"
    text = f"class Around:\n{of}    def half(self, n):\n        return n // {{}}\n"
    beside.write_text(text.format(2))
    module.write_text(
        f"import morok\nfrom {beside.stem} import Around\n\n@morok.helper\ndef f(n, around):\n    return around.half(n)\n"
    )
    rules.write_text(rules.read_text().replace('"one"\n', '"one"\n@context Around;\n'))
    assert main(["prove", "--trust-helpers", str(rules)]) == 0
    assert main(["prove", str(rules)]) == 0
    beside.write_text(text.format(3))
    forgotten(beside)
    forgotten(module)
    assert main(["prove", str(rules)]) == 3, "nobody tested this code"
    with pytest.raises(UnprovedRuleError, match="is not true"):
        morok.load_rules(rules, trust_helpers=True)
