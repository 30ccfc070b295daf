"""`python -m bench [CASE ...] [--save]`: run the benchmarks, print the table."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.metadata
import json
import os
import pkgutil
import platform
import sys
from pathlib import Path

# One thread for every contestant, before any of them loads.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "MOROK_THREADS"):
    os.environ.setdefault(name, "1")

from bench import cases  # noqa: E402
from bench.harness import Outcome, contend  # noqa: E402

HERE = Path(__file__).resolve().parent


def machine() -> dict[str, str]:
    """What the figures were taken on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    versions = {}
    for package in ("numpy", "llvmlite", "z3-solver", "tinygrad", "torch", "jax", "scikit-learn"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {"cpu": cpu, "cores": str(os.cpu_count()), "python": platform.python_version(), **versions}


def _milliseconds(t: float) -> str:
    return f"{t * 1e3:.3f}" if t < 1 else f"{t * 1e3:.0f}"


def show(outcomes: list[Outcome]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("figure", "ours (ms)", "peers (ms)", "ours / peer", "goal", "reached", box=None)
    for o in outcomes:
        peers = "\n".join(f"{name} {_milliseconds(t)}" for name, t in o.peers.items())
        ratios = "\n".join(f"{r:.3f}" for r in o.ratios.values())
        goal = "" if o.goal is None else f"<= {o.goal:.3g} of {o.against}"
        if o.most is not None:
            goal = f"<= {_milliseconds(o.most)} ms"
        reached = {True: "yes", False: "no", None: ""}[o.reached]
        table.add_row(o.figure, _milliseconds(o.ours), peers, ratios, goal, reached)
    Console(width=140).print(table)


def main() -> int:
    names = [m.name for m in pkgutil.iter_modules(cases.__path__)]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"some of {', '.join(names)} (default: all)")
    parser.add_argument("--save", action="store_true", help="write the figures to bench/results/")
    args = parser.parse_args()
    unknown = set(args.cases) - set(names)
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    outcomes: list[Outcome] = []
    for name in args.cases or names:
        for contest in importlib.import_module(f"bench.cases.{name}").contests():
            print(f"{name}: {contest.figure} ...", file=sys.stderr)
            outcomes.append(contend(contest))
    show(outcomes)
    if args.save:
        rows = [{**dataclasses.asdict(o), "ratios": o.ratios, "reached": o.reached} for o in outcomes]
        file = HERE / "results" / f"{'-'.join(args.cases) or 'all'}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"machine": machine(), "figures": rows}, indent=1) + "\n")
        print(f"wrote {file}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
