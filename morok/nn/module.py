"""The base class of layers: tensors and further layers as attributes, found by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from morok.arguments import flag, function, mapping
from morok.caller import caller
from morok.errors import StateError, UsageError
from morok.tensor import registry
from morok.tensor.base import show
from morok.tensor.describing import read_array
from morok.tensor.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


class Module:
    """A layer: tensors and layers (or lists, tuples and dicts of them) as attributes, and a method `forward`.

    Names are paths of attributes, keys and positions: `blocks.0.weight`. There are no gradients yet, so layers are in
    inference mode until `train()`.

    >>> class Twice(nn.Module):
    ...     def forward(self, x):
    ...         return x * 2
    >>> Twice()(Tensor([1, 2])).tolist()
    [2, 4]
    """

    measured: ClassVar[frozenset[str]] = frozenset()
    """Names of attributes with statistics of the data: part of the state, but no parameters."""

    training: bool = False

    def forward(self, x: Tensor) -> Tensor:
        """The layer's value for `x`; each layer defines its own method. UsageError for a layer without one.

        >>> nn.Sequential(Tensor.relu).forward(Tensor([-1, 2])).tolist()
        [0, 2]
        """
        raise UsageError(
            f"{type(self).__name__} has no forward()", place=caller(), expected="a method forward(self, x)"
        )

    def __call__(self, x: Tensor) -> Tensor:
        return self.forward(x)

    def train(self, mode: bool = True) -> Self:
        """This layer itself, with all its layers set to training mode, or not. ArgumentTypeError for a mode that is no bool.

        >>> nn.BatchNorm(3).train().training
        True
        """
        mode = flag(mode, "mode")
        for _, module in self._modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """This layer itself, with all its layers set to inference mode.

        >>> nn.BatchNorm(3).train().eval().training
        False
        """
        return self.train(False)

    def parameters(self) -> list[Tensor]:
        """The distinct tensors that training would change.

        >>> [t.shape for t in nn.Linear(3, 2).parameters()]
        [(2, 3), (2,)]
        """
        found = {id(t): t for _, module, name, t in self._tensors() if name not in module.measured}
        return list(found.values())

    def state_dict(self) -> dict[str, Array]:
        """Copies of all tensors as ndarrays, by name.

        >>> {name: a.shape for name, a in nn.Linear(3, 2).state_dict().items()}
        {'weight': (2, 3), 'bias': (2,)}
        """
        named = [(path, t) for path, _, _, t in self._tensors()]
        Tensor.realize_batch([t for _, t in named])
        return {path: t.numpy().copy() for path, t in named}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Self:
        """This layer itself, its tensors' values replaced by arrays (or tensors) by name, cast to the tensors' dtypes.

        StateError if a shape differs, and if `strict` and a name is missing or unknown; nothing is changed then. Plans that
        were prepared before keep the old values.

        >>> layer = nn.Linear(2, 1).load_state_dict({"weight": [[1.0, 2.0]], "bias": [0.5]})
        >>> layer(Tensor([[1.0, 1.0]])).tolist()
        [[3.5]]
        """
        state, strict = mapping(state, "the state", "arrays by name", StateError), flag(strict, "strict")
        named = {path: t for path, _, _, t in self._tensors()}
        missing = [n for n in named if n not in state]
        unknown = [n for n in state if n not in named]
        if strict and (missing or unknown):
            wrong = [
                f"{what}: {', '.join(map(str, names))}"
                for what, names in (("missing", missing), ("unknown", unknown))
                if names
            ]
            raise StateError(
                f"the state does not fit: {'; '.join(wrong)}",
                place=caller(),
                expected=", ".join(named) or "no tensors",
                hint="strict=False takes what fits",
            )
        loaded: list[tuple[Tensor, Tensor]] = []
        for path, old in named.items():
            if path not in state:
                continue
            value = state[path]
            new = value if isinstance(value, Tensor) else Tensor(_copy(value, path), device=old.device)
            if new.shape != old.shape:
                raise StateError(f"{path} has shape {show(new.shape)}", place=caller(), expected=show(old.shape))
            loaded.append((old, new.cast(old.dtype)))
        for old, new in loaded:
            registry.write(old, new.uop)
        return self

    def _children(self) -> Iterator[tuple[str, Any]]:
        """(path, value) of the tensors and layers directly in this one, in attribute order."""
        pending: list[tuple[str, Any]] = [(k, v) for k, v in reversed(vars(self).items())]
        while pending:
            path, value = pending.pop()
            if isinstance(value, (Tensor, Module)):
                yield path, value
            elif isinstance(value, (list, tuple)):
                pending += [(f"{path}.{k}", v) for k, v in reversed(list(enumerate(value)))]
            elif isinstance(value, dict):
                pending += [(f"{path}.{k}", v) for k, v in reversed(value.items())]

    def _modules(self) -> list[tuple[str, Module]]:
        """(path, layer) of this layer and all layers in it, each once."""
        found: dict[int, tuple[str, Module]] = {}
        pending: list[tuple[str, Module]] = [("", self)]
        while pending:
            path, module = pending.pop()
            if id(module) in found:
                continue
            found[id(module)] = (path, module)
            below = [(f"{path}{name}.", v) for name, v in module._children() if isinstance(v, Module)]
            pending += reversed(below)
        return list(found.values())

    def _tensors(self) -> list[tuple[str, Module, str, Tensor]]:
        """(path, layer that holds it, path in that layer, tensor) of all tensors."""
        return [
            (path + name, module, name, t)
            for path, module in self._modules()
            for name, t in module._children()
            if isinstance(t, Tensor)
        ]

    def _summary(self) -> str:
        """The text between the parentheses of `repr`, for a layer without inner layers."""
        return ""

    def __repr__(self) -> str:
        lines: list[str] = []
        pending: list[tuple[int, str, Module | None]] = [(0, "", self)]
        while pending:
            depth, name, module = pending.pop()
            indent = "  " * depth
            if module is None:
                lines.append(f"{indent})")
                continue
            head = f"{indent}{name}{type(module).__name__}("
            below = [(n, m) for n, m in module._children() if isinstance(m, Module)]
            if not below:
                lines.append(f"{head}{module._summary()})")
                continue
            lines.append(head)
            pending.append((depth, "", None))
            pending += [(depth + 1, f"{n}: ", m) for n, m in reversed(below)]
        return "\n".join(lines)


class Sequential(Module):
    """Layers, or functions of a tensor, applied one after the other. ArgumentTypeError for anything that is not callable.

    >>> nn.Sequential(Tensor.relu, Tensor.sum)(Tensor([-1, 2])).item()
    2
    """

    def __init__(self, *layers: Callable[[Tensor], Tensor]) -> None:
        self.layers = [function(layer, "a layer") for layer in layers]

    def forward(self, x: Tensor) -> Tensor:
        """The value of the last layer; each is applied to the value of the one before.

        >>> nn.Sequential(Tensor.relu, Tensor.sum).forward(Tensor([-1, 2])).item()
        2
        """
        for layer in self.layers:
            x = layer(x)
        return x


def _copy(value: Any, path: str) -> Array:
    """A copy as an ndarray, independent of the caller's array; StateError if there is none."""
    try:
        return np.array(read_array(value))
    except (TypeError, ValueError, RuntimeError) as problem:
        raise StateError(f"{path} cannot be read: {problem}", place=caller(), expected="an array") from None
