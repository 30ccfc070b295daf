"""What runs inside the recorded environment: one part of a recording, in a folder of inputs, written to one page.

    python -P -m house.recorder PART PAGE SHARE

It knows the package by its public names only. SHARE is how much of a part to record, 1 for all of it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

import morok
from house import calls, commands, pages, values
from house.bad_texts import groups_of, mistaken
from house.expression_texts import Expressions
from house.surface import surface
from house.tensor_texts import Program
from morok import Tensor

EXPRESSIONS: Final = 20_000
PROGRAMS: Final = 220  # of elementwise ops, views and reductions
NETWORKS: Final = 60  # of the pieces of models, as bench/programs.py draws them
DEVICES: Final = ("CPU", "CUDA")
WRONG_EXPRESSIONS: Final = 3000
WRONG_RULES: Final = 1500
CORPORA: Final = ("tests/prove", "examples")
NUMPYS: Final = {"f16": "f2", "f32": "f4", "f64": "f8", "u8": "u1", "i32": "i4", "i64": "i8", "bool": "?"}

Entries = dict[str, str]


def folders() -> dict[str, str]:
    """The folders that texts may name, and what is written in their place."""
    package = str(Path(morok.__file__).parent)
    found = {str(Path(package).parent): "<checkout>", sys.prefix: "<environment>", sys.base_prefix: "<python>"}
    return found | {
        os.getcwd(): "<inputs>",
        os.environ["MOROK_CACHE_DIR"]: "<cache>",
        tempfile.gettempdir(): "<temporary>",
    }


class Firings:
    """Traces by key; they can be read when the process ends, which is when the package writes them."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp())
        self._paths: dict[str, Path] = {}

    @contextlib.contextmanager
    def of(self, key: str) -> Iterator[None]:
        path = self._paths.setdefault(key, self._folder / f"{len(self._paths)}.json")
        with morok.settings(trace=path):
            yield

    def read(self) -> Entries:
        """For each key the stage and the rule of each firing, in their order."""
        found = {}
        for key, path in self._paths.items():
            # no file: nothing was rewritten
            written = path.read_text(encoding="utf-8") if path.is_file() else '{"firings": []}'
            found[key] = pages.counted(f"{row['stage']}: {row['rule']}" for row in json.loads(written)["firings"])
        return found


def simplified(share: float, firings: Firings) -> Entries:
    """What `simplify` makes of random expressions."""
    source, found = Expressions(20260816), Entries()
    for n in range(round(EXPRESSIONS * share)):
        text = source.text()
        with firings.of(f"{n:05}"):
            found[f"{n:05}"] = f"{text}\n{values.outcome(lambda text=text: morok.simplify(morok.parse(text)))}"
    return found


def numbers(seed: int, shape: tuple[int, ...], dtype: str) -> Tensor:
    """Small whole numbers: their sums are the same in every order."""
    return Tensor(np.asarray(np.random.default_rng(seed).integers(0, 5, shape)).astype(NUMPYS[dtype]))


def random_program(seed: int) -> Tensor:
    program = Program(seed)
    world: dict[str, Any] = {"Tensor": Tensor, "np": np, "numbers": numbers}
    exec(program.text(), world)
    found: Tensor = world[f"v{len(program.shapes) - 1}"]
    return found


def random_network(seed: int) -> Tensor:
    sys.path.insert(0, os.getcwd())
    from bench import programs

    drawn = programs.drawn(np.random.default_rng(seed), 16)
    weights = {name: Tensor(a) for name, a in drawn.numbers(seed).items()}
    found: Tensor = drawn.run(programs.OF_TENSORS, weights)
    return found


def code(tensor: Tensor, device: str) -> str:
    return "\n".join(f"{k.name} for {k.backend}\n{k.code}" for k in tensor.kernels(device=device))


def computed(share: float, firings: Firings) -> Entries:
    """Of programs of chance the kernels for each device, and the values."""
    makers: dict[str, Callable[[], Tensor]] = {}
    for n in range(round(PROGRAMS * share)):
        makers[f"random program {n:03}"] = lambda n=n: random_program(n)
    for n in range(round(NETWORKS * share)):
        makers[f"random network {n:03}"] = lambda n=n: random_network(n)
    found = Entries()
    for name, make in makers.items():
        for device in DEVICES:
            with firings.of(f"{name}: {device}"):
                found[f"{name}: {device}"] = result(lambda make=make, device=device: code(make(), device))
        found[f"{name}: values"] = result(lambda make=make: values.of_array(make().numpy()))
    return found


def result(call: Callable[[], str]) -> str:
    """A text, or the error in its place."""
    try:
        return call()
    except Exception as error:
        return values.of_error(error)


class Watched:
    """Whatever computes tensors while this is entered has their kernels recorded first, under the name of what is run."""

    REALIZING: Final = ("realize", "numpy", "item", "tolist", "to_ndarray", "prepare")

    def __init__(self) -> None:
        self.found = Entries()
        self.name = ""
        self._inside = False

    def record(self, tensor: Tensor) -> None:
        number = sum(key.startswith(f"{self.name} ") for key in self.found) // len(DEVICES)
        for device in DEVICES:
            self.found[f"{self.name} tensor {number:03}: {device}"] = result(lambda device=device: code(tensor, device))

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        kept = {name: getattr(Tensor, name) for name in self.REALIZING}
        try:
            for name, method in kept.items():
                setattr(Tensor, name, self._watching(method))
            yield
        finally:
            for name, method in kept.items():
                setattr(Tensor, name, method)

    def _watching(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def watched(tensor: Tensor, *arguments: Any, **named: Any) -> Any:
            if not self._inside:
                self._inside = True
                try:
                    self.record(tensor)
                finally:
                    self._inside = False
            return method(tensor, *arguments, **named)

        return watched


def shown_programs(share: float, firings: Firings) -> Entries:
    """The kernels of every tensor that examples and the guide's snippets compute, and what they print."""
    watched = Watched()
    snippets = {
        f"{page} snippet {n}": text
        for page in ("README.md", *sorted(str(p) for p in Path("docs").glob("*.md")))
        for n, text in enumerate(
            re.findall(r"^```python\n(.*?)^```", Path(page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
        )
    }
    examples = {str(p): p.read_text("utf-8") for p in sorted(Path("examples").glob("*.py"))}
    programs = examples | snippets
    sys.path.insert(0, "examples")
    Path("shifts.rules").write_text(readme_rules(), encoding="utf-8")
    found = Entries()
    for name in list(programs)[: max(1, round(len(programs) * share))]:
        watched.name = name
        with watched(), firings.of(name), contextlib.redirect_stdout(None):
            main = name if name in snippets else "__main__"
            world = {"__name__": main, "__file__": name}
            with contextlib.suppress(SystemExit):
                found[name] = values.outcome(
                    lambda world=world, name=name: exec(compile(programs[name], name, "exec"), world)
                )
    return found | watched.found


def readme_rules() -> str:
    """The rule file that the README's snippets load."""
    match = re.search(r"^```rules\n(.*?)^```", Path("README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return match[1] if match else ""


def verdicts(arguments: list[str]) -> Entries:
    """What `morok prove` finds out, asking no ledger, by rule; what is not about one rule is an entry of its own."""
    command = [sys.executable, "-m", "morok", "prove", "--no-cache", "--jobs", "1", "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    found = {f"status of prove {' '.join(arguments)}": f"{done.returncode}\n{done.stderr}"}
    for rule in report.pop("rules"):
        key = f"{rule.pop('file')} {rule.pop('name')}"
        for volatile in ("seconds", "line"):
            rule.pop(volatile, None)
        found[key] = json.dumps(rule, indent=1, sort_keys=True)
    found[f"rest of prove {' '.join(arguments)}"] = json.dumps(report, indent=1, sort_keys=True)
    return found


def library(share: float, firings: Firings) -> Entries:
    """Verdicts on the built-in rules."""
    return verdicts([] if share == 1 else ["--only", "boolean.*"])


def corpora(share: float, firings: Firings) -> Entries:
    """Verdicts on rules that are true and false on purpose."""
    files = [str(p) for folder in CORPORA for p in sorted(Path(folder).glob("*.rules"))]
    found = Entries()
    for file in files[: max(1, round(len(files) * share))]:
        found |= verdicts(["--trust-helpers", file])
    return found


def mistakes_in_texts(share: float, firings: Firings) -> Entries:
    """What is said about texts of expressions and rules with a token that is wrong."""
    rng, source, found = random.Random(16), Expressions(16), Entries()
    for n in range(round(WRONG_EXPRESSIONS * share)):
        text = mistaken(source.text(), rng)
        found[f"expression {n:04}"] = f"{text}\n{values.outcome(lambda text=text: morok.parse(text))}"
    groups = list(groups_of([p for folder in CORPORA for p in sorted(Path(folder).glob("*.rules"))]))
    path = Path("mistaken.rules")
    for n in range(round(WRONG_RULES * share)):
        path.write_text(mistaken(rng.choice(groups), rng), encoding="utf-8")
        found[f"rules {n:04}"] = values.outcome(lambda: morok.load_rules(path, prove=False))
    return found


def mistakes_in_calls(share: float, firings: Firings) -> Entries:
    """What calls of all public names end in."""
    every = list(calls.calls())
    found = Entries()
    for text in every[:: max(1, round(1 / share))]:
        with contextlib.redirect_stdout(None):
            found[text] = values.outcome(lambda text=text: eval(compile(text, "<call>", "eval"), dict(calls.WORLD)))
    return found


def said_by_commands(share: float, firings: Firings) -> Entries:
    """Output and status of each command line."""
    for name, text in commands.FILES.items():
        Path(name).write_text(text, encoding="utf-8")
    found = Entries()
    for line in commands.LINES if share == 1 else commands.TINY:
        command = [sys.executable, "-m", "morok", *shlex.split(line)]
        done = subprocess.run(command, capture_output=True, text=True, errors="backslashreplace", check=False)
        key = f"morok {line}"
        found[key if key not in found else f"{key} again"] = (
            f"{done.stdout}\n--- stderr\n{done.stderr}\n--- status {done.returncode}"
        )
    for folder in ("pages", "book", "asked", "proofs"):
        for file in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
            found[f"written by a command: {file}"] = pages.digest(file.read_bytes())
    return found


PARTS: Final[Mapping[str, Callable[[float, Firings], Entries]]] = {
    "names": lambda share, firings: surface(Path()),
    "simplify": simplified,
    "programs": computed,
    "examples": shown_programs,
    "texts": mistakes_in_texts,
    "calls": mistakes_in_calls,
    "commands": said_by_commands,
    "corpora": corpora,
    "library": library,
}
AS_IT_IS: Final = frozenset({"programs", "examples"})  # kernels hold numbers that look like times


def main(part: str, page: Path, share: float) -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    firings = Firings()
    known = folders()
    found = Entries()

    def finish() -> None:  # registered before the package registers what writes its traces, so it runs after it
        fired = {f"{key}: fired": rules for key, rules in firings.read().items()}
        entries = {k: v if part in AS_IT_IS else pages.scrubbed(v, known) for k, v in (found | fired).items()}
        pages.write(page, entries)

    atexit.register(finish)
    found |= PARTS[part](share, firings)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
