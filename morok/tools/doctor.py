"""Report the machine, its backends, and whether the caches and proofs are in order."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
from collections import Counter

from morok import __version__, cache_folder, config
from morok.codegen.machines import host
from morok.errors import MorokError
from morok.rewrite.library import catalogue
from morok.runtime import gpu
from morok.runtime.buffer import CPU_POOL as pool
from morok.runtime.device import status
from morok.tools.output import emit_json, emit_table


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _cache() -> str:
    folder = config.cache_dir()
    above = folder
    while not above.exists():
        above = above.parent
    refused = cache_folder.refusal(folder)
    if refused:
        return f"{folder} (nothing is cached: {refused})"
    return f"{folder} ({'writable' if above.is_dir() and os.access(above, os.W_OK) else 'not writable: nothing is cached'})"


def _rules() -> str:
    """The number of rules with each verdict, or the reason why the ledger cannot be read."""
    try:
        verdicts = Counter(entry.verdict for entry in catalogue())
    except MorokError as problem:
        return str(problem)
    return ", ".join(f"{n} {verdict}" for verdict, n in sorted(verdicts.items()))


def _pool() -> str:
    """The state of the memory pools of the CPU, and of the GPU if there is one, as text."""
    text = f"CPU: {pool.held} of at most {pool.limit} bytes held, {pool.allocated} blocks taken, {pool.reused} reused"
    if gpu.status().usable:
        text += "; CUDA: " + ", ".join(f"{n} bytes {what}" for what, n in gpu.pool_statistics().items())
    return text


def run(args: argparse.Namespace) -> int:
    target = host()
    facts = {
        "morok": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": str(os.cpu_count()),
        **{p: _version(p) for p in ("lark", "z3-solver", "llvmlite", "numpy")},
        "CPU": f"vectors of {target.vector_bytes} bytes, {target.registers} registers, fma {'yes' if target.fma else 'no'}",
        "CUDA": status(),
        "memory": _pool(),
        "cache": _cache(),
        "rules": _rules(),
    }
    if args.json:
        emit_json(facts)
    else:
        emit_table(list(facts.items()), ("what", "found"))
    return 0
