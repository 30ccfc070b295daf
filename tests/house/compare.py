"""Two checkouts compared through public names only: what a redesign changed for users.

    python tests/house/compare.py record PYTHON FOLDER [--parts PART,PART] [--share S] [--inputs FOLDER]
    python tests/house/compare.py compare FOLDER FOLDER [--most N]

`record` runs PYTHON, the interpreter of an environment in which a checkout is installed, and writes a page a part into FOLDER:

    names      public names, their parameters; imports that README, docs and examples show
    simplify   what `simplify` makes of 20,000 random expressions, and which rules fired in which order
    programs   280 random programs: their kernels' text for LLVM and CUDA, their values, which rules fired in which order
    examples   the kernels of every tensor that examples and the guide's snippets compute, which rules fired in which order
    texts      the message about each of 4,500 texts of expressions and rules with a wrong token
    calls      what each of 29,000 right and wrong calls of public names ends in
    commands   output and status of 260 command lines, of every command
    corpora    verdict, scope and counterexample of rules that are true and false on purpose
    library    verdict and scope of every built-in rule, proved anew

Examples, docs and corpora are those of the commit BEFORE, whatever is compared. Pages hold no times, paths or addresses: two
recordings of one checkout are equal. `compare` prints each entry that differs, equal differences
together, and exits with status 1 if there is one.
"""

from __future__ import annotations

import argparse
import collections
import difflib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from house import pages  # noqa: E402  # run as a script, the folder that holds the package is not on the path

BEFORE: Final = "5ea33494bf"  # `before-house`: what redesigns are compared with
INPUTS: Final = ("README.md", "docs", "examples", "tests/prove", "bench/__init__.py", "bench/programs.py")
# longest first
PARTS: Final = ("library", "commands", "corpora", "simplify", "programs", "examples", "texts", "calls", "names")
JOBS: Final = 2  # parts side by side


def inputs(folder: Path) -> None:
    """Write what programs and rules of users are taken from, as it was at BEFORE, into a folder."""
    command = ["git", "-C", str(TESTS.parent), "archive", BEFORE, *INPUTS]
    with tarfile.open(fileobj=io.BytesIO(subprocess.run(command, check=True, capture_output=True).stdout)) as archive:
        archive.extractall(folder, filter="data")


def record_part(part: str, python: str, out: Path, share: float, given: Path | None) -> float:
    """Record one part in a process, a folder and with caches of its own; the seconds that it took."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder).resolve()
        work, cache, temporary = scratch / "work", scratch / "cache", scratch / "temporary"
        for made in (work, cache, temporary):
            made.mkdir()
        if given is None:
            inputs(work)
        else:
            for name in INPUTS:
                (work / name).parent.mkdir(parents=True, exist_ok=True)
                (work / name).symlink_to(given / name)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MOROK_", "PYTHON"))}
        known = {
            "PYTHONPATH": str(TESTS),
            "PYTHONHASHSEED": "0",
            "MOROK_CACHE_DIR": str(cache),
            "TMPDIR": str(temporary),
            "COLUMNS": "120",
        }
        command = [python, "-P", "-m", "house.recorder", part, str(out / f"{part}.txt"), str(share)]
        done = subprocess.run(
            command, cwd=work, env=kept | known, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    if done.returncode or not (out / f"{part}.txt").is_file():
        raise SystemExit(f"{part}: status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return time.monotonic() - began


def record(python: str, out: Path, parts: Sequence[str] = PARTS, share: float = 1.0, given: Path | None = None) -> None:
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with ThreadPoolExecutor(JOBS) as pool:
        waiting = {part: pool.submit(record_part, part, python, out, share, given) for part in PARTS if part in parts}
        for part, waited in waiting.items():
            print(f"{part:9} {waited.result():6.1f} s", flush=True)
    print(f"{'all':9} {time.monotonic() - began:6.1f} s")


def changes(before: list[str], after: list[str]) -> tuple[str, ...]:
    """The lines that differ, each once, without their places."""
    lines = difflib.unified_diff(before, after, n=0, lineterm="")
    return tuple(dict.fromkeys(line for line in lines if not line.startswith(("---", "+++", "@@"))))


def differences(first: Path, second: Path) -> dict[str, dict[tuple[str, ...], list[str]]]:
    """By page the entries that differ, those together that differ in the same lines."""
    found: dict[str, dict[tuple[str, ...], list[str]]] = {}
    for name in sorted({p.name for folder in (first, second) for p in folder.glob("*.txt")}):
        if not ((first / name).is_file() and (second / name).is_file()):
            found[name] = {(f"only in {first if (first / name).is_file() else second}",): ["the page"]}
            continue
        before, after = pages.read(first / name), pages.read(second / name)
        groups: dict[tuple[str, ...], list[str]] = collections.defaultdict(list)
        for key in sorted(before.keys() | after.keys()):
            if key not in after or key not in before:
                groups[(f"only in {first if key in before else second}",)].append(key)
            elif before[key] != after[key]:
                groups[changes(before[key], after[key])].append(key)
        if groups:
            found[name] = dict(groups)
    return found


def compare(first: Path, second: Path, most: int) -> int:
    """Print what differs, at most so many lines of each difference; 1 if anything does."""
    found = differences(first, second)
    for name, groups in found.items():
        print(f"\n{name}: {sum(map(len, groups.values()))} entries differ, in {len(groups)} ways")
        for lines, keys in sorted(groups.items(), key=lambda group: -len(group[1])):
            print(f"\n  {len(keys)}: {', '.join(keys[:3])}{', ..' if len(keys) > 3 else ''}")
            print(
                "".join(f"    {line}\n" for line in lines[:most])
                + (f"    .. {len(lines) - most} more\n" if len(lines) > most else ""),
                end="",
            )
    print(
        "\nno difference"
        if not found
        else f"\n{sum(len(g) for groups in found.values() for g in groups.values())} entries differ"
    )
    return 1 if found else 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("python", help="the interpreter of the environment to record")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--parts", default=",".join(PARTS))
    recording.add_argument("--share", type=float, default=1.0, help="of each part")
    recording.add_argument(
        "--inputs", type=Path, help="a checkout whose examples, docs and corpora to use, not BEFORE's"
    )
    comparing = commands.add_parser("compare")
    comparing.add_argument("first", type=Path)
    comparing.add_argument("second", type=Path)
    comparing.add_argument("--most", type=int, default=12, help="lines of one difference")
    options = parser.parse_args(argv)
    if options.command == "compare":
        return compare(options.first, options.second, options.most)
    parts = options.parts.split(",")
    if unknown := sorted(set(parts) - set(PARTS)):
        parser.error(f"no such part: {', '.join(unknown)}")
    record(os.path.abspath(options.python), options.folder, parts, options.share, options.inputs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
