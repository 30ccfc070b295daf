"""Layers of neural networks: named tensors, and functions that apply them. A layer's module is imported on first use."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as in morok/__init__.py

if TYPE_CHECKING:
    from typing import Any

    from morok.nn.conv import Conv2d as Conv2d
    from morok.nn.conv import ConvTranspose2d as ConvTranspose2d
    from morok.nn.linear import Embedding as Embedding
    from morok.nn.linear import Linear as Linear
    from morok.nn.module import Module as Module
    from morok.nn.module import Sequential as Sequential
    from morok.nn.norm import BatchNorm as BatchNorm
    from morok.nn.norm import GroupNorm as GroupNorm
    from morok.nn.norm import LayerNorm as LayerNorm
    from morok.nn.norm import RMSNorm as RMSNorm

_HOME = {
    "Module": "module",
    "Sequential": "module",
    "Linear": "linear",
    "Embedding": "linear",
    "Conv2d": "conv",
    "ConvTranspose2d": "conv",
    "LayerNorm": "norm",
    "RMSNorm": "norm",
    "GroupNorm": "norm",
    "BatchNorm": "norm",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'morok.nn' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"morok.nn.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
