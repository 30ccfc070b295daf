"""What a program can get wrong: an error of Morok's with a code, the place, and what was expected; never one from the inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import morok
from morok import Tensor, UOp, dtypes
from morok.errors import MorokError, UnprovedRuleError
from morok.ir.op import Op
from morok.optimize.strategy import Beam, OptimizerConfig
from morok.rewrite.library import group, groups

X = UOp.var("x", dtypes.index, 0, 31)


def three() -> Tensor:
    return Tensor([1, 2, 3])


WRONG: dict[str, tuple[str, Callable[[], Any]]] = {
    "simplify a number": ("MRK401", lambda: morok.simplify(3)),
    "simplify a tensor": ("MRK401", lambda: morok.simplify(three())),
    "rewrite a number": ("MRK401", lambda: morok.rewrite(3, group("boolean"))),
    "rewrite with nothing": ("MRK902", lambda: morok.rewrite(X, None)),
    "apply to a number": ("MRK401", lambda: group("boolean")[next(iter(group("boolean")))].apply(3)),
    "no such rule": ("MRK302", lambda: group("boolean")["no_such_rule"]),
    "no such group": ("MRK103", lambda: group("no_such_group")),
    "no such file": ("MRK100", lambda: morok.load_rules("no_such.rules")),
    "parse a number": ("MRK402", lambda: morok.parse(3)),  # type: ignore[arg-type]
    "a switch of 7": ("MRK901", lambda: morok.settings(noopt=7).__enter__()),
    "a device of 7": ("MRK901", lambda: morok.settings(device=7).__enter__()),
    "no switch": ("MRK901", lambda: morok.settings(noopt=None).__enter__()),
    "a flag that is none": ("MRK901", lambda: morok.settings(fast_math={"quick"}).__enter__()),
    "a shape of letters": ("MRK508", lambda: three().reshape("a")),
    "a shape of halves": ("MRK508", lambda: three().reshape(1.5, 2)),
    "an axis of letters": ("MRK508", lambda: three().sum("a")),
    "half an axis": ("MRK508", lambda: three().flip(0.5)),
    "half a pair": ("MRK501", lambda: three().pad(((1,),))),
    "no pair": ("MRK501", lambda: three().shrink((1,))),
    "a step of nothing": ("MRK501", lambda: three()[::0]),
    "a slice of letters": ("MRK508", lambda: three()["a":"b"]),
    "realize a number": ("MRK502", lambda: three().realize(3)),
    "a strategy of letters": ("MRK901", lambda: OptimizerConfig(strategy="beam")),  # type: ignore[arg-type]
    "no such setting": ("MRK901", lambda: morok.settings(thread=1).__enter__()),
    "no such device": ("MRK602", lambda: Tensor([1.0], device="GPU")),
    "no such stage": ("MRK902", lambda: morok.append_rules(40, group("boolean")).__enter__()),
    "rules without their context": ("MRK902", lambda: morok.rewrite(X, group("split_store"))),
    "a rule without its context": ("MRK902", lambda: group("split_store")["split_store.end"].apply(X)),
    "an op of numbers": ("MRK401", lambda: UOp.new(Op.Add, (1, 2))),  # type: ignore[arg-type]
    "an op of operands in a list": ("MRK401", lambda: UOp.new(Op.Add, [X, X])),  # type: ignore[arg-type]
    "an op of a list": ("MRK401", lambda: UOp.new(Op.Add, ([1], X))),  # type: ignore[arg-type]
    "an op of tensors": ("MRK401", lambda: UOp.new(Op.Reshape, (three(), X))),  # type: ignore[arg-type]
    "a group that is a number": ("MRK103", lambda: group(5)),  # type: ignore[arg-type]
    "no groups": ("MRK902", lambda: groups()),
    "rules and a number": ("MRK508", lambda: group("boolean") + 2),  # type: ignore[operator]
    "a rule that is an array": ("MRK302", lambda: group("boolean")[np.arange(2)]),  # type: ignore[index]
    "rules tried on a number": ("MRK401", lambda: group("boolean").tried(4)),
    "a file that is a number": ("MRK508", lambda: morok.load_rules(8)),  # type: ignore[arg-type]
    "a file without a name": ("MRK902", lambda: morok.load_rules("")),
    "a file that no system can name": ("MRK902", lambda: morok.load_rules("\ud800")),
    "proofs of a number": ("MRK508", lambda: morok.prove(1.5)),
    "proofs by no jobs": ("MRK508", lambda: morok.prove("x.rules", jobs="all")),
    "a trace that is none": ("MRK508", lambda: morok.rewrite(X, group("boolean"), trace=3)),  # type: ignore[arg-type]
    "stage of letters": ("MRK508", lambda: morok.append_rules("a", group("boolean")).__enter__()),  # type: ignore[arg-type]
    "a number behind a stage": ("MRK508", lambda: morok.append_rules(3, 3).__enter__()),  # type: ignore[arg-type]
    "a width of letters": ("MRK901", lambda: Beam("wide")),  # type: ignore[arg-type]
    "no time": ("MRK901", lambda: Beam(2, timeout=0.0)),
    "threads of letters": ("MRK901", lambda: OptimizerConfig(threads="all")),  # type: ignore[arg-type]
    "a switch of numbers": ("MRK901", lambda: OptimizerConfig.builder().k_vectorize(7)),  # type: ignore[arg-type]
    "a setting that is a list of lists": ("MRK901", lambda: morok.settings(beam=[[1], []]).__enter__()),
    "a file of a setting without a name": ("MRK901", lambda: morok.settings(trace="\0").__enter__()),
    "a variable of letters": ("MRK503", lambda: morok.Variable("n", "a", [])),  # type: ignore[arg-type]
    "an index of numbers": ("MRK401", lambda: UOp.new(Op.Index, (1, 2), False)),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_wrong_use_has_a_code(what: str) -> None:
    code, use = WRONG[what]
    with pytest.raises(MorokError) as caught:
        use()
    assert caught.value.code == code
    assert caught.value.expected or caught.value.hint
    place = caught.value.place
    assert place is not None
    assert place.file in (__file__, "no_such.rules")


def test_a_tensors_graph_is_named_where_the_tensor_was_given() -> None:
    with pytest.raises(MorokError, match="pass the graph in its attribute `uop`"):
        morok.simplify(three())
    assert morok.simplify(three().uop) is not None


def test_a_rule_that_is_not_there_is_a_key_error_too() -> None:
    rules = group("identity_and_zero")
    with pytest.raises(KeyError) as caught:
        rules["identity_and_zero.add_zeroo"]
    assert "did you mean identity_and_zero.add_zero" in str(caught.value)
    assert rules["add_zero"].name == "identity_and_zero.add_zero"


def test_settings_are_read_as_their_variables(tmp_path: Path) -> None:
    from morok import config

    with morok.settings(noopt=True, fast_math={"nsz", "contract"}, cache_dir=tmp_path, check=1, trace=None):
        assert config.NOOPT.value is True
        assert config.FAST_MATH.value == frozenset({"nsz", "contract"})
        assert config.CACHE_DIR.value == tmp_path
        assert config.CHECK.value is True
        assert config.TRACE.value is None


def test_every_public_name_is_exported() -> None:
    found: dict[str, Any] = {}
    exec("from morok import *", found)
    assert {"Tensor", "UOp", "dtypes", "Variable", "parse", "simplify", "load_rules", "rewrite"} <= set(found)


def test_a_variable_is_a_dimension() -> None:
    n = morok.Variable("n", 1, 8)
    assert Tensor.empty(n, 4).sum(1).shape == (n.node,)


def test_a_rule_that_was_judged_is_to_be_mended_not_proved_again(tmp_path: Path) -> None:
    file = tmp_path / "false.rules"
    file.write_text('group g "g"\n\na: Add(x: i32, 1) ~> x\n    "false"\n')
    with pytest.raises(UnprovedRuleError, match="its verdict is refuted") as caught:
        morok.load_rules(file)
    assert caught.value.hint == f"`morok prove {file}` says why; mend the rule"
