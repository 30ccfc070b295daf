"""The ledger and the gate: a proof holds for exactly one meaning of a rule."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from morok.dsl.check import check_file, check_text
from morok.dsl.checked import CheckedRule, Sort
from morok.errors import LedgerError, UnprovedRuleError
from morok.ir.dtype import dtypes
from morok.ir.morok_dialect import MOROK
from morok.ir.uop import UOp
from morok.prove import admission, api, fingerprints, ledger, obligation_store, sources
from morok.prove.rule_syntax import implied_ops, ops_of
from morok.prove.static import mentions, read_module
from morok.rewrite.library import load_rules
from morok.rewrite.ruleset import RuleSet

PACKAGE = Path(sources.__file__).resolve().parents[1]

RULES = """\
# a small pack
group pack "two rules"

double: Add(x: i32, x) ~> Mul(x, 2)
bounded: Mod(x: index, @const(n)) if 0 <= vmin(x) and vmax(x) < n ~> x
"""


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "pack.rules"
    file.write_text(RULES)
    return file


def checked(text: str, file: str = "<text>") -> list[CheckedRule]:
    return list(check_text(text, file).rules())


def digests(text: str) -> list[str]:
    return [ledger.rule_digest(r) for r in checked(text)]


def test_layout_comments_names_and_documentation_carry_no_meaning() -> None:
    same = RULES.replace("Add(x: i32, x)", "Add( x : i32 ,\n        x )").replace("# a small pack", "# words")
    same = same.replace("double:", "renamed:").replace("Mul(x, 2)", 'Mul(x, 2)\n    "twice"')
    assert digests(RULES) == digests(same)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x, 2", "x, 3"),
        ("i32", "i64"),
        ("Add", "Sub"),
        ("vmax(x) < n", "vmax(x) <= n"),
        ("0 <=", "0 <"),
        ("vmin(x)", "vmax(x)"),
        ("~> x\n", "~> n\n"),
    ],
)
def test_every_change_of_meaning_is_another_digest(old: str, new: str) -> None:
    assert old in RULES
    assert digests(RULES) != digests(RULES.replace(old, new))


def test_contracts_are_part_of_the_meaning() -> None:
    text = """\
helpers "promised"
extern half(x: index) -> (h: index)?
    ensures x == 2 * h
group g "one"
r: Idiv(x: index, 2)
    let h = half(x)
    => h
"""
    assert digests(text) != digests(text.replace("2 * h", "3 * h"))


CHANGED: dict[str, Callable[[CheckedRule], Any]] = {
    "bindings": lambda r: {name: replace(b, invalid_ok=True) for name, b in r.bindings.items()},
    "types": lambda r: {**r.types, id(r.syntax.target): replace(r.type_of(r.syntax.target), lanes=2)},
    "sorts": lambda r: dict.fromkeys(r.sorts, Sort.OTHER),
    "domains": lambda r: {letter: (*dtypes, "f32") for letter, dtypes in r.domains.items()},
    "instances": lambda r: r.instances[:1],
    "unbounded": lambda r: frozenset(r.sorts),
    "pointwise": lambda r: not r.pointwise,
    "helpers": lambda r: "os",
    "context": lambda r: "Context",
}


def test_what_the_checker_makes_of_a_rule_is_part_of_its_meaning() -> None:
    rule = checked("group g\nr: Idiv(x: int, @const(c)) if is_pow2(c) and vmin(x) >= 0 ~> Shr(x, log2(c))\n")[0]
    own = {
        "name",
        "own",
        "file",
        "line",
        "text",
        "dialect",
        "syntax",
        "externs",
    }  # words, and what has tests of its own
    assert {f.name for f in fields(CheckedRule)} == own | CHANGED.keys()
    known = ledger.rule_digest(rule)
    same = [
        name for name, change in CHANGED.items() if ledger.rule_digest(replace(rule, **{name: change(rule)})) == known
    ]
    assert not same


def test_a_rule_with_other_dtypes_than_were_proved_does_not_fire(pack: Path) -> None:
    pack.write_text("group g\nr: Sub(x: sint, x) ~> zero(x)\n")
    rule = load_rules(pack).rules[0]
    x = UOp.var("x", dtypes.f32)
    assert RuleSet.of([rule]).rewrite_node(x - x) is None
    for wider in ({"$1": ("i32", "f32")}, {"$1": ("f32",)}):
        with pytest.raises(UnprovedRuleError):
            RuleSet.of([replace(rule, domains=wider)]).rewrite_node(x - x)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the sources that digests are made from, to be changed."""
    copy = tmp_path / "morok"
    for folder in ("prove", "dsl", "ir"):
        shutil.copytree(PACKAGE / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in PACKAGE.glob("*.py"):
        shutil.copy(file, copy)
    for module in (sources, fingerprints):
        monkeypatch.setattr(module, "_PACKAGE", copy)
    forget()
    yield copy
    forget()


def forget() -> None:
    for remembered in (sources.core_digest, sources._package, sources._bytes, sources._solver_digest):
        remembered.cache_clear()


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("prove/semantics/integers.py", "def variable(self", "def variable(self, *, _other=None"),
        ("prove/semantics/floats.py", "def read(self", "def read(self, *, _other=None"),
        ("prove/semantics/numbers.py", "def const(self", "def const(self, *, _other=None"),
        ("ir/ops/loop.py", "else -0.0 if", "else 0.0 if"),
        ("ir/number.py", "def wrap(d: DType, v: int)", "def wrap(d: DType, v: int, *, _other: int = 0)"),
        ("ir/dtype.py", "def safe_cast(", "def unsafe_cast("),
        ("dsl/checked.py", "for ty in types) <= 1", "for ty in types) <= 2"),
        ("dsl/syntax.py", "todo += children(at)", "todo = children(at)"),
        ("prove/rule_syntax.py", "def ops_of", "def some_ops_of"),
    ],
)
def test_what_every_proof_calls_is_part_of_every_digest(package: Path, file: str, old: str, new: str) -> None:
    before = digests(RULES)
    text = (package / file).read_text()
    assert old in text
    (package / file).write_text(text.replace(old, new))
    forget()
    assert not set(before) & set(digests(RULES))


@pytest.mark.long
def test_what_only_one_op_calls_is_part_of_its_rules_digests_alone(package: Path) -> None:
    text = 'group g "roots"\n\na: Sqrt(x: f32) ~> Sqrt(x)\nb: Add(x: f32, y) ~> Add(y, x)\n'
    root, total = digests(text)
    file = package / "prove" / "semantics" / "floats.py"
    file.write_text(file.read_text().replace("def sqrt(self", "def sqrt(self, *, _other=None"))
    forget()
    assert [d == e for d, e in zip((root, total), digests(text), strict=True)] == [False, True]


OPS = [(n, info.solver.partition(":")[2]) for n, info in MOROK.ops.items() if info.solver]
# Ops whose meaning is said by another's: they use it.
CALLERS = {"Mul": {"Square"}, "Lt": {"Gt"}, "Le": {"Ge"}}


@pytest.fixture(scope="module")
def closures() -> tuple[set[str], dict[str, set[str]]]:
    """The solver functions of ops that every proof's digest covers, and those that each op's does."""
    package = sources._Package()
    home = "morok.prove.semantics.ops"
    called, attrs = [], set()
    for file in sources.core_files():
        at = read_module(".".join(("morok", *file.relative_to(PACKAGE).with_suffix("").parts)), file)
        assert at is not None
        called += package.closure.references(at, mentions(at.tree))
        attrs |= mentions(at.tree).attrs
    core = package.closure.of(called, attrs, package.modules)
    each = {op: {n for m, n in package.function(f).text if m == home} for op, f in OPS}
    return {n for m, n in core.text if m == home}, each


@pytest.mark.parametrize(("op", "function"), OPS)
def test_a_solver_function_is_part_of_the_digests_of_the_ops_that_use_it(
    closures: tuple[set[str], dict[str, set[str]]], op: str, function: str
) -> None:
    core, each = closures
    assert function not in core
    assert {o for o, called in each.items() if function in called} == {op} | CALLERS.get(op, set())


@pytest.mark.long
@pytest.mark.parametrize(
    ("op", "old", "new"),
    [
        ("Max", "return _pick(w, d, a, b, least=False)", "return _pick(w, d, b, a, least=False)"),
        ("Min", "return _pick(w, d, a, b, least=True)", "return _pick(w, d, b, a, least=True)"),
        ("And", "return _decided(smt.And(a.value, b.value)", "return _decided(smt.And(b.value, a.value)"),
        ("Shl", "n.shl(a.value, b.value)", "n.shl(b.value, a.value)"),
    ],
)
def test_a_solver_function_that_is_changed_re_opens_its_rules_alone(package: Path, op: str, old: str, new: str) -> None:
    text = 'group g "g"\n\n' + "".join(
        f"{o.lower()}_: {o}(x: i32, y) ~> {o}(y, x)\n" for o in ("Max", "Min", "And", "Shl", "Add")
    )
    before = dict(zip(("Max", "Min", "And", "Shl", "Add"), digests(text), strict=True))
    file = package / "prove" / "semantics" / "ops.py"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    forget()
    after = dict(zip(("Max", "Min", "And", "Shl", "Add"), digests(text), strict=True))
    assert {o for o in before if before[o] != after[o]} == {op}


def test_what_a_proof_uses_and_the_rule_does_not_mention_is_covered() -> None:
    text = """group g "g"

sum: Reduce { src: x: i32, op: Add, ranges: [] } ~> x
any: Reduce { src: x: i32, op, ranges: [] } ~> x
"""
    first, second = (set(implied_ops(r)) | set(ops_of(r)) for r in checked(text))
    assert {"Add", "Or"} <= first
    assert not {"Max", "Mul"} & first
    assert {"Add", "Or", "Max", "Mul", "Min", "And"} <= second


# What proofs do not come from: entries of ops are in the digests of the rules that name them, counterexamples refute; and how
# digests are made.
NEEDLESS = {
    "morok.dialect.HasPlaces",  # its sets of ops are Morok's, in ir/places.py
    "morok.dialect.OpInfo",
    "morok.dialect.built_in",
    "morok.dsl.check.check_text",  # reads rules about numbers, whose obligations are recorded, and made again by `recheck`
    "morok.dsl.syntax",
    "morok.errors.RuleError",
    "morok.ir.op.Op",
    "morok.ir.op.Undefined",
    "morok.locks.SOLVER",
    "morok.marks.trusted",  # whether helpers are called, without which a verdict is not final
    "morok.ir.number.coerce",  # in the digest, with what it calls
    "morok.ir.ops.loop.identity_of",  # likewise
    "morok.ir.ops.transcendental.TOLERANCE",  # likewise
    "morok.dsl.structural.relations",  # likewise
    "morok.dialect.OperandInfo",
    "morok.prove.measuring",
    "morok.prove.sources",
    "morok.prove.fingerprints.digest",
    "morok.prove.verdict",
}

# What rules are fired and evaluated with, by the files that do it: no proof comes of it, and a difference refutes.
FIRED_WITH = {
    "morok.config",
    "morok.dsl.compiled",
    "morok.errors",
    "morok.ir.interpret",
    "morok.ir.interpret.memory_places",
    "morok.ir.interpret.lane_values",
    "morok.ir.launch",
    "morok.ir.number",
    "morok.ir.op",
    "morok.ir.ranges",
    "morok.ir.shape",
    "morok.ir.uop",
    "morok.prove.least",
    "morok.prove.replay",
    "morok.prove.trust.least_graph",
    "morok.prove.trust.smallest",
    "morok.rewrite.parts",
    "morok.rewrite.ruleset",
}


def test_no_file_that_proofs_come_from_is_forgotten() -> None:
    files = [f for f in sources.core_files() if "prove" in f.parts]
    modules = {".".join(("morok", *f.relative_to(PACKAGE).with_suffix("").parts)) for f in sources.core_files()}
    known = NEEDLESS | {m.removesuffix(".__init__") for m in modules}
    for file in files:
        imports = [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.ImportFrom)]
        names = {(n.module or "", a.name) for n in imports for a in n.names}
        ours = {n for n in names if n[0].startswith("morok") and not n[0].startswith("morok.prove.semantics")}
        fires = file.parent.name == "trust" or file.name.endswith("counterexample.py")
        covered = known | FIRED_WITH if fires else known
        assert not {(m, n) for m, n in ours if not covered & {m, f"{m}.{n}"}}, file


def test_the_gate_refuses_what_is_not_proved_and_names_it(pack: Path) -> None:
    rules = list(check_file(pack).rules())
    with pytest.raises(UnprovedRuleError) as refused:
        admission.records_of(rules)
    assert refused.value.place is not None
    assert refused.value.place.file == str(pack)
    assert refused.value.place.line == 4
    assert "pack.double" in refused.value.message
    admission.records_of(rules, prove=True)
    admission.records_of(rules)  # this machine remembers


def test_one_character_closes_the_gate_and_a_comment_does_not(pack: Path) -> None:
    api.prove(pack, jobs=1, remember=True)
    admission.records_of(check_file(pack).rules())
    assert ledger.unchanged(pack, pack.read_bytes()) is not None
    pack.write_text(RULES.replace("# a small pack", "# a pack"))
    assert ledger.unchanged(pack, pack.read_bytes()) is None  # other bytes: the slow path decides
    admission.records_of(check_file(pack).rules())
    pack.write_text(RULES.replace("Mul(x, 2)", "Mul(x, 3)"))
    with pytest.raises(UnprovedRuleError):
        admission.records_of(check_file(pack).rules())


def test_a_refuted_rule_does_not_pass_when_proved_on_the_spot(pack: Path) -> None:
    pack.write_text('group g "false"\n\nr: Idiv(x: i32, 4) ~> Shr(x, 2)\n')
    with pytest.raises(UnprovedRuleError, match="refuted"):
        admission.records_of(check_file(pack).rules(), prove=True)


def test_a_pack_is_evidence_and_not_trust(pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = api.prove(pack, jobs=1, write=True)
    assert [v.verdict for v in verdicts] == ["proved", "proved"]
    page = ledger.read_page(ledger.page_path(pack))
    assert page is not None
    assert set(page.records) == {"pack.double", "pack.bounded"}
    assert [p.name for p in (tmp_path / "proofs").iterdir()] == ["pack.json"]
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "another machine"))
    rules = list(check_file(pack).rules())
    with pytest.raises(UnprovedRuleError):
        admission.records_of(rules)
    admission.records_of(rules, trust_ledger=True)
    assert ledger.unchanged(pack, pack.read_bytes()) is None
    assert ledger.compared(pack, pack.read_bytes(), rules, trust_ledger=True) is not None
    assert ledger.unchanged(pack, pack.read_bytes()) is None
    assert ledger.unchanged(pack, pack.read_bytes(), trust_ledger=True) is not None


def test_a_packs_ledger_vouches_for_the_rules_that_stayed_whatever_the_pack_is_called(
    pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.prove(pack, write=True)
    pack.write_text(RULES + "added: Sub(x: i32, @zero) ~> x\n")
    monkeypatch.setenv("MOROK_CACHE_DIR", str(tmp_path / "another machine"))
    with pytest.raises(UnprovedRuleError, match=r"pack\.pack\.added is not proved") as refused:
        load_rules(pack, prove=False, trust_ledger=True)
    assert "more" not in refused.value.message
    with pytest.raises(UnprovedRuleError, match=rf"{tmp_path.name}\.pack\.added is not proved"):
        load_rules(tmp_path, prove=False, trust_ledger=True)


def test_a_rule_is_called_the_same_before_and_after_it_was_proved(pack: Path) -> None:
    """And as the set of rules calls it, whoever proved it."""
    first = [v.name for v in api.prove(pack)]
    assert (
        first
        == [v.name for v in api.prove(pack)]
        == list(load_rules(pack).names)
        == ["pack.pack.double", "pack.pack.bounded"]
    )
    folder = [v.name for v in api.prove(pack.parent)]
    assert folder == [v.name for v in api.prove(pack.parent)] == list(load_rules(pack.parent).names)
    assert folder == [f"{pack.parent.name}.pack.double", f"{pack.parent.name}.pack.bounded"]


@pytest.mark.long
def test_what_was_measured_in_code_of_rules_that_are_not_proved_now_is_not_proved(tmp_path: Path) -> None:
    """After a change of the prover every rule is unproved; the catalogue says so."""
    code = (
        "from morok.prove import sources, fingerprints\n"
        "sources.core_digest = fingerprints.source_bytes = lambda: 'another'\n"
        "from morok.prove import admission\n"
        "from morok.rewrite import library\n"
        "file = next(library.rules_dir().rglob('transcendental.rules'))\n"
        "print(set(admission.verdicts(library._built_in_file(file).file).values()))\n"
    )
    environment = {**os.environ, "MOROK_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("set()", 0), done.stderr


def test_own_names() -> None:
    text = """\
group g "templates, and a rule that is called like an op"
for op in binary [Add, Mul] {
    fold: op(@const(a), @const(b)) ~> eval(op, a, b)
    Add: op(x: i32, x) ~> op(x, x)
}
Sub: Sub(x: i32, @zero) ~> x
"""
    own = ["g.fold.Add", "g.Add.Add", "g.fold.Mul", "g.Add.Mul", "g.Sub"]
    for name in ("", "p", "a.b"):
        assert sorted(r.own for r in check_text(text, pack=name).rules()) == sorted(own)


def test_a_broken_page_is_an_error_of_its_own(pack: Path) -> None:
    path = ledger.page_path(pack)
    path.parent.mkdir()
    path.write_text("{")
    with pytest.raises(LedgerError):
        admission.records_of(check_file(pack).rules(), trust_ledger=True)


def test_what_is_unchanged_loads_no_solver(pack: Path, tmp_path: Path) -> None:
    api.prove(pack, jobs=1, remember=True)
    code = (
        "import sys\nfrom morok.prove import api\n"
        f"v = api.prove({str(pack)!r})\n"
        "assert [x.verdict for x in v] == ['proved', 'proved'], v\n"
        "assert not {'z3', 'lark', 'morok.ir.uop'} & set(sys.modules)\n"
    )
    import os

    environment = {**os.environ, "MOROK_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_obligations_are_questions_another_solver_can_check(pack: Path, tmp_path: Path) -> None:
    import z3

    api.prove(pack, jobs=1, use_cache=False, smt2=tmp_path / "smt2")
    files = sorted((tmp_path / "smt2").glob("*.smt2"))
    assert [f.name for f in files] == ["pack.pack.bounded.smt2", "pack.pack.double.smt2"]
    for file in files:
        scripts = [s for s in file.read_text().split("(reset)") if "(check-sat)" in s]
        assert scripts
        for script in scripts:
            solver = z3.Solver(ctx=z3.Context())
            solver.from_string(script.replace("(check-sat)", ""))
            assert solver.check() == z3.unsat


def test_only_selects_rules_and_keeps_the_others_records(pack: Path) -> None:
    api.prove(pack, jobs=1, write=True)
    verdicts = api.prove(pack, jobs=1, write=True, use_cache=False, only="*.double")
    assert [v.name for v in verdicts] == ["pack.pack.double"]
    page = ledger.read_page(ledger.page_path(pack))
    assert page is not None
    assert set(page.records) == {"pack.double", "pack.bounded"}


def test_the_answer_does_not_depend_on_how_many_work(pack: Path) -> None:
    alone = api.prove(pack, jobs=1, use_cache=False)
    together = api.prove(pack, jobs=2, use_cache=False)
    key = [(v.name, v.verdict, v.scope, v.resources) for v in alone]
    assert key == [(v.name, v.verdict, v.scope, v.resources) for v in together]


def edit(pack: Path, own: str, **fields: Any) -> None:
    """Make the ledger say something else of a rule."""
    path = ledger.page_path(pack)
    page = ledger.read_page(path)
    assert page is not None
    ledger.write_page(path, replace(page, records={**page.records, own: replace(page.records[own], **fields)}))


def differences(pack: Path) -> list[str]:
    found: list[str] = []
    api.prove(pack, jobs=1, use_cache=False, differs=found.append)
    return found


def test_proving_anew_agrees_with_the_ledger_or_says_in_what_it_does_not(pack: Path) -> None:
    api.prove(pack, jobs=1, write=True)
    assert differences(pack) == []
    edit(pack, "pack.double", verdict="bounded")
    assert differences(pack) == ["pack.pack.double: verdict is proved, in the ledger bounded"]
    edit(pack, "pack.double", verdict="proved", resources=9_999_999)
    assert len(differences(pack)) == 1
    ledger.page_path(pack).unlink()
    unknown = "proved, and the ledger has no record of it"
    assert differences(pack) == [f"pack.pack.double: {unknown}", f"pack.pack.bounded: {unknown}"]


def test_another_version_of_the_solver_is_noted_once_and_only_its_verdicts_are_compared(pack: Path) -> None:
    api.prove(pack, jobs=1, write=True)
    now = json.loads(ledger.page_path(pack).read_text())["rules"][0]["solver"]
    for own in ("pack.double", "pack.bounded"):
        edit(pack, own, solver="z3 5.3.9", resources=9_999_999)
    found: list[str] = []
    notes: list[str] = []
    api.prove(pack, jobs=1, use_cache=False, differs=found.append, notes=notes.append)
    assert found == []
    assert len(notes) == 1
    assert notes[0].startswith(f"{now} proved 2 rules that the ledger has from z3 5.3.9")
    edit(pack, "pack.double", verdict="bounded")
    assert differences(pack)[0] == "pack.pack.double: verdict is proved, in the ledger bounded"


def test_obligations_other_than_the_recorded_ones_are_a_difference(pack: Path) -> None:
    api.prove(pack, jobs=1, write=True)
    (asked, *_) = (r["questions"] for r in json.loads(ledger.page_path(pack).read_text())["rules"])
    edit(pack, "pack.double", questions="0" * 32)
    assert differences(pack) == [f"pack.pack.double: questions is {asked}, in the ledger {'0' * 32}"]


def test_a_record_names_the_obligations_that_are_made_again(pack: Path, tmp_path: Path) -> None:
    api.prove(pack, jobs=1, write=True)
    page = ledger.read_page(ledger.page_path(pack))
    assert page is not None
    api.prove(pack, jobs=1, smt2=tmp_path / "asked")
    made = obligation_store.read(tmp_path / "asked")
    assert {f"pack.{n}": r.questions for n, r in page.records.items()} == {
        name: obligation_store.digest_of(asked) for name, asked in made.items()
    }
    assert all("(check-sat)" in text for asked in made.values() for _, text in asked)


def test_a_record_that_says_nothing_of_what_was_asked_is_made_anew(pack: Path) -> None:
    api.prove(pack, jobs=1, remember=True)  # on this machine alone
    assert all(not v.recorded_earlier for v in api.prove(pack, jobs=1, write=True))
    assert all(v.recorded_earlier and v.questions for v in api.prove(pack, jobs=1, write=True))


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ('group double "g"\n\ndouble: Add(x: i32, x) ~> Mul(x, 2)\n', "double.double"),
        ('group twice "g"\n\ndouble: Add(x: i32, x) ~> Mul(x, 2)\n', "twice.double"),
        ('group g "g"\n\nfor op in binary [Add, Mul] {\n    swap: op(x: i32, y) ~> op(y, x)\n}\n', "g.swap.Add"),
        ('group g "g"\n\nfor op in binary [Add, Mul] {\n    Add: op(x: i32, y) ~> op(y, x)\n}\n', "g.Add.Add"),
    ],
)
def test_the_ledger_knows_a_rule_by_its_name_without_the_packs(text: str, own: str) -> None:
    """A group may be called as its rule, and a template as one of its ops."""
    for pack in ("", "mine", "a.b"):
        first = next(iter(check_text(text, pack=pack).rules()))
        assert first.name == (f"{pack}.{own}" if pack else own)
        assert first.own == own
