"""`morok viz`: the page holds the whole trace, and nothing that a graph's text could break."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import morok
from morok import UOp, dtypes
from morok.rewrite.library import symbolic
from morok.rewrite.trace import Trace
from morok.tools.cli import main
from morok.tools.viz import FIELDS, stage_name

Captured = pytest.CaptureFixture[str]


def data(page: Path) -> Any:
    found = re.search(r'<script id=data type="application/json">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def test_the_page_holds_the_trace(tmp_path: Path, capsys: Captured) -> None:
    x = UOp.var("x", dtypes.index, 0, 31)
    trace = Trace()
    morok.rewrite(UOp.new(morok.Op.Idiv, (x * 4 + 3, x.like(4))), symbolic(), trace=trace)
    file = tmp_path / "trace.json"
    trace.write(file)
    assert main(["viz", str(file)]) == 0
    shown = data(tmp_path / "trace.html")
    firings = json.loads(file.read_text())["firings"]
    assert firings
    assert shown["total"]["firings"] == len(shown["rows"]) == len(firings)
    for row, firing in zip(shown["rows"], firings, strict=True):
        stage, rule, before, before_id, after, after_id, _ = row
        texts = [shown["strings"][n] for n in (stage, rule, before, after)]
        assert texts == [stage_name(firing["stage"]), firing["rule"], firing["before"], firing["after"]]
        assert (before_id, after_id) == (firing["before_id"], firing["after_id"])
    text = (tmp_path / "trace.html").read_text()
    assert "http" not in text
    assert not re.search(r"<(?:link|img|script src)", text)
    capsys.readouterr()


def firing(**changes: Any) -> dict[str, Any]:
    return dict(zip(FIELDS, ("8", "g.r", "a", 0, "b", 1, 0.5), strict=True)) | changes


def test_counts_and_names(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "t.json"
    rows = [firing(), firing(rule="g.s", stage=""), firing(), firing(rule="a.a", stage="mine", seconds=2)]
    file.write_text(json.dumps({"firings": rows}))
    assert main(["viz", str(file), "--out", str(tmp_path / "p.html"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["stages"] == {"8 Post-opt symbolic": 2, "outside the pipeline": 1, "mine": 1}
    assert list(said["rules"].items()) == [("g.r", 2), ("a.a", 1), ("g.s", 1)]
    assert (said["firings"], said["seconds"], said["page"]) == (4, 2, str(tmp_path / "p.html"))


def test_text_that_looks_like_html(tmp_path: Path) -> None:
    file = tmp_path / "<t>.json"
    file.write_text(json.dumps({"firings": [firing(before="</script><script>alert(1)", after="a & b <b>")]}))
    assert main(["viz", str(file)]) == 0
    page = tmp_path / "<t>.html"
    assert {"</script><script>alert(1)", "a & b <b>"} <= set(data(page)["strings"])
    assert "<title>&lt;t&gt;.json</title>" in page.read_text()
    assert page.read_text().count("<script") == 2


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"firings": 3}', '{"firings": [{"rule": "r"}]}', '{"firings": [7]}', "\ud800"]
)
def test_what_is_no_trace(text: str, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "t.json"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert main(["viz", str(file)]) == 2
    assert "is no trace" in capsys.readouterr().err
    assert main(["viz", str(tmp_path / "none.json")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_a_field_of_another_kind(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"firings": [firing(before=3)]}))
    assert main(["viz", str(file)]) == 2
    assert "is no trace" in capsys.readouterr().err
