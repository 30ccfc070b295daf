"""Loading rules: the gate, packs, tiers, what is kept on disk."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import morok
from morok.errors import RuleError, UnknownNameError, UnprovedRuleError, UsageError
from morok.ir.dtype import dtypes
from morok.ir.op import Op
from morok.ir.uop import UOp
from morok.rewrite import engine, files, library, store
from morok.rewrite.matchers import matcher_for
from morok.rewrite.ruleset import RuleSet
from morok.rewrite.tiers import SYMBOLIC, SYMBOLIC_SIMPLE

ROOT = Path(__file__).resolve().parents[2]
GOOD = 'group double "doubling"\n\nshift: Add(x: int, x) ~> Shl(x, 1)\n    "a sum of equals"\nzero: Add[x: !float, @zero] ~> x\n'
X = UOp.var("x", dtypes.i32)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory):
    with morok.config.settings(cache_dir=tmp_path_factory.mktemp("cache")):
        yield


@pytest.fixture
def pack(tmp_path):
    path = tmp_path / "mine.rules"
    path.write_text(GOOD)
    return path


def test_a_pack_is_proved_on_the_spot_and_named_for_its_file(pack):
    rules = morok.load_rules(pack)
    assert rules.names == ("mine.double.shift", "mine.double.zero")
    assert rules["mine.double.shift"].apply(X + X) is X << 1
    assert rules["double.shift"].apply(X + X) is X << 1
    assert rules["double.shift"].apply(X + 1) is None
    with pytest.raises(KeyError):
        rules["double.none"]


def test_the_package_is_the_function(pack):
    assert morok.rewrite((X + 0) + X, morok.load_rules(pack)) is X << 1


def test_packs_that_are_dropped_leave_no_rules_behind(tmp_path, monkeypatch):
    """Many packs are loaded, used and dropped: a few stay for sets of the same rules, and no file with its syntax."""
    monkeypatch.setattr(engine, "_programs", {})
    monkeypatch.setattr(engine, "_PROGRAMS", 3)
    path = tmp_path / "mine.rules"
    for n in range(100, 110):
        path.write_text(f"group g\n\na: Add(x: i32, {n}) ~> Add({n}, x)\n")
        assert morok.rewrite(X + n, morok.load_rules(path)) is UOp.const(n, dtypes.i32) + X
    gc.collect()
    assert sum(isinstance(o, files.RuleFile) and o.path == path for o in gc.get_objects()) <= 3


def test_without_proving_what_is_not_proved_is_refused(pack):
    with pytest.raises(UnprovedRuleError) as caught:
        morok.load_rules(pack, prove=False)
    assert "double.shift" in str(caught.value)
    assert f"{pack}:3" in str(caught.value)


def test_once_proved_a_pack_stays_proved(pack):
    morok.load_rules(pack)
    assert len(morok.load_rules(pack, prove=False)) == 2


def test_a_copy_of_rules_is_the_rules_and_other_processes_load_their_own(pack):
    rules = morok.load_rules(pack)
    assert copy.copy(rules) is copy.deepcopy(rules) is rules
    for matched in (False, True):
        if matched:
            morok.rewrite(X, rules)
        with pytest.raises(UsageError, match="cannot be pickled"):
            pickle.dumps(rules)


def test_a_changed_pack_is_not_proved(pack):
    morok.load_rules(pack)
    pack.write_text(GOOD.replace("Shl(x, 1)", "Shl(x, 2)"))
    with pytest.raises(UnprovedRuleError, match=r"double\.shift"):
        morok.load_rules(pack)


def test_a_folder_is_a_pack(tmp_path):
    folder = tmp_path / "several"
    folder.mkdir()
    (folder / "a.rules").write_text(GOOD)
    (folder / "b.rules").write_text('group other "other"\n\nself: Sub(x: int, x) ~> zero(x)\n')
    assert morok.load_rules(folder).names == ("several.double.shift", "several.double.zero", "several.other.self")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(RuleError, match="cannot read"):
        morok.load_rules(tmp_path / "none.rules")
    with pytest.raises(RuleError, match="no rules"):
        morok.load_rules(tmp_path)


def test_unknown_groups():
    with pytest.raises(UnknownNameError, match="no_such_group"):
        library.group("no_such_group")


def test_simplify_and_tiers():
    x = UOp.var("x", dtypes.index, 0, 31)
    assert morok.simplify((x * 4 + 3).idiv(4)) is x
    assert len(library.tier("sym")) > len(library.tier("symbolic")) > len(library.tier("symbolic_simple"))
    assert library.groups("constant_folding", "cast") is library.groups("constant_folding", "cast")
    a, b = engine.rewrite_all([(x + 0) * 2, x + 0], library.symbolic())
    assert (a, b) == (x * 2, x)


@pytest.mark.long
def test_rules_that_assume_more_than_is_allowed_stay_out():
    f = UOp.var("f", dtypes.f32)
    rules = library.group("identity_and_zero")
    assert rules.rewrite_node(f + 0.0) is None
    with morok.config.settings(fast_math="nsz"):
        assert rules.rewrite_node(f + 0.0) == (f, "identity_and_zero.add_zero_float")
        assert morok.simplify(f + 0.0) is f
    assert morok.simplify(f + 0.0) is not f


def test_the_catalogue_knows_every_rule():
    entries = library.catalogue()
    names = [e.name for e in entries]
    assert len(names) == len(set(names)) > 300
    assert {n.partition(".")[0] for n in names} == set(library._group_homes())
    one = next(e for e in entries if e.name == "identity_and_zero.add_zero")
    assert one.verdict == "proved"
    assert one.file == "rules/algebra/identity.rules"
    assert ROOT.joinpath(one.file).read_text().splitlines()[one.line - 1].startswith("add_zero:")


def test_spoiled_caches_do_no_harm(pack, tmp_path):
    for spoil in (b"", b"x" * 500, None):
        folder = morok.config.cache_dir() / "rules"
        for kept in folder.glob("*/*") if folder.is_dir() else ():
            if spoil is None:
                kept.unlink()
            else:
                kept.write_bytes(spoil)
        assert morok.load_rules(pack).rewrite_node(X + 0) == (X, "mine.double.zero")


def test_a_cache_that_cannot_be_written_does_no_harm(pack, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with morok.config.settings(cache_dir=blocked / "cache"):
        store.save("key", b"value")
        assert store.load("key") is None
        rules = RuleSet(morok.load_rules(pack).parts)
        assert rules.rewrite_node(X + 0) == (X, "mine.double.zero")


def test_what_is_kept_is_used(pack, monkeypatch):
    flags = morok.config.FAST_MATH.value
    first = matcher_for(morok.load_rules(pack), flags, False)
    import morok.dsl.compile as compiler

    monkeypatch.setattr(compiler, "compile_rules", None)
    again = matcher_for(morok.load_rules(pack), flags, False)
    assert again.names == first.names
    monkeypatch.undo()  # the text is made of the rules anew
    assert again.source() == first.source()


def test_a_group_fires_where_it_does_in_the_pipeline():
    """A place that is loaded or written is none that is read: what is loaded already stays as it is."""
    loads = library.groups("add_loads")
    source, target = (UOp.new(Op.DefineGlobal, (), slot, dtypes.f32.ptr(8)) for slot in (1, 0))
    at = UOp.range(8, 0)
    read, place = source.index(at), target.index(at)
    wanted = UOp.sink(place.store(read.load() + 1.0).end(at))
    for given in (UOp.sink(place.store(read + 1.0).end(at)), wanted):
        assert morok.rewrite(given, loads) is wanted
        assert morok.rewrite(given, loads + library.groups("identity_and_zero")) is wanted
        assert morok.rewrite(given, library.groups("identity_and_zero", "add_loads")) is wanted
    table = UOp.new(Op.DefineGlobal, (), 2, dtypes.index.ptr(8)).index(at)
    assert morok.rewrite(source.index(table).load(), loads) is source.index(table.load()).load()


def test_sets_around_the_symbolic_rules_share_their_matcher():
    core = library.groups(*SYMBOLIC_SIMPLE)
    merging = library.groups("merge_ranges", *SYMBOLIC)
    assert [b for b in merging.blocks if b is core] == [core]
    assert [n for b in merging.blocks for n in b.names] == list(merging.names)
    assert library.groups("merge_ranges").blocks == ()
    assert (merging + library.groups("add_loads")).blocks[:-1] == merging.blocks


def test_rules_of_every_block_fire_under_their_names():
    gep = UOp.vectorize(UOp.var("x", dtypes.f32), UOp.var("y", dtypes.f32)).gep(1)
    for rules in (library.groups(*SYMBOLIC), library.groups("merge_ranges", *SYMBOLIC)):
        hit = rules.rewrite_node(gep)
        assert hit is not None
        assert rules[hit[1]].apply(gep) is hit[0]
        assert rules.rewrite_node(X + 0) == (X, "identity_and_zero.add_zero")
        assert rules.rewrite_node(X) is None


PROBE = """
import sys, time
begin = time.perf_counter()
import morok
from morok import UOp, dtypes
x = UOp.var("x", dtypes.index, 0, 31)
assert morok.simplify((x * 4 + 3).idiv(4)) is x
print(time.perf_counter() - begin)
print([m for m in ("lark", "z3", "numpy", "llvmlite", "rich", "morok.dsl.syntax") if m in sys.modules])
"""


@pytest.mark.long
def test_the_first_simplify_of_a_process_loads_no_parser_and_no_solver():
    env = {**os.environ, "MOROK_CACHE_DIR": str(morok.config.cache_dir()), "PYTHONPATH": str(ROOT)}
    run = [sys.executable, "-c", PROBE]
    for _ in range(2):  # where caches are cold, the second one
        out = subprocess.run(run, check=True, env=env, capture_output=True, text=True).stdout.splitlines()
        if out[1] == "[]":
            break
    assert out[1] == "[]"


@pytest.mark.long
def test_a_first_program_with_cold_caches_keeps_no_syntax_and_no_parser(tmp_path):
    """No rule file is parsed twice, and what was parsed, and the parser, are let go of."""
    program = """
import gc
from morok import Tensor
from morok.dsl import check

parsed, check_bytes = [], check.check_bytes
check.check_bytes = lambda content, where, **named: (parsed.append(where), check_bytes(content, where, **named))[1]
Tensor([1.0]).add(Tensor([2.0])).realize()
gc.collect()
kept = {type(o).__qualname__ for o in gc.get_objects() if type(o).__module__ in ("morok.dsl.syntax", "lark.lark")}
print(len(parsed) > 9, len(parsed) == len(set(parsed)), sorted(kept & {"File", "Group", "Rule", "Lark"}))
"""
    env = {**os.environ, "MOROK_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", program], check=True, env=env, capture_output=True, text=True)
    assert ran.stdout == "True True []\n"


def test_no_rules_mention_a_name_that_is_no_text() -> None:
    """A surrogate has no bytes in UTF-8, in which rule files are."""
    assert not library.groups(*list(library._group_homes())[:3]).mentions("\ud800")
