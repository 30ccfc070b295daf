"""Whole networks, one thread: a plan against torch's eager functions over the same weights, in inference mode.

The networks are those of `examples/models.py`. Outputs are compared with torch's before anything is timed, and so is the
peak memory of a run beside weights and inputs: of all buffers of a plan at once, and of what torch's profiler sees allocated.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Contest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TOLERANCE = 1e-5  # of the greatest output


def networks() -> Any:
    """The module `examples/models.py`."""
    spec = importlib.util.spec_from_file_location("models", EXAMPLES / "models.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["models"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Torch:
    """The same networks, of torch's functions, over a state dict of torch's tensors."""

    def __init__(self, state: dict[str, np.ndarray]) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch, self.f = torch, torch.nn.functional
        self.state = {name: torch.from_numpy(a) for name, a in state.items()}

    def norm(self, x: Any, name: str) -> Any:
        s = self.state
        mean, var = s[f"{name}.running_mean"], s[f"{name}.running_var"]
        return self.f.batch_norm(x, mean, var, s[f"{name}.weight"], s[f"{name}.bias"])

    def linear(self, x: Any, name: str) -> Any:
        return self.f.linear(x, self.state[f"{name}.weight"], self.state.get(f"{name}.bias"))

    def conv(self, x: Any, name: str, stride: int = 1, padding: int = 0) -> Any:
        return self.f.conv2d(x, self.state[f"{name}.weight"], self.state.get(f"{name}.bias"), stride, padding)

    def layer_norm(self, x: Any, name: str) -> Any:
        return self.f.layer_norm(x, (x.shape[-1],), self.state[f"{name}.weight"], self.state[f"{name}.bias"])

    def resnet18(self, x: Any) -> Any:
        f = self.f
        x = f.max_pool2d(f.relu(self.norm(self.conv(x, "conv1", 2, 3), "bn1"), inplace=True), 3, 2, 1)
        for block in range(8):
            name, stride = f"blocks.{block}", 2 if block in (2, 4, 6) else 1
            y = f.relu(self.norm(self.conv(x, f"{name}.conv1", stride, 1), f"{name}.bn1"), inplace=True)
            y = self.norm(self.conv(y, f"{name}.conv2", 1, 1), f"{name}.bn2")
            if stride == 2:
                x = self.norm(self.conv(x, f"{name}.shortcut.0", 2), f"{name}.shortcut.1")
            x = f.relu(y.add_(x), inplace=True)
        return self.linear(x.mean((2, 3)), "fc")

    def gpt(self, x: Any, layers: int, heads: int) -> Any:
        f, s = self.f, self.state
        n, t = x.shape
        x = f.embedding(x, s["token.weight"]) + s["position.weight"][:t]
        for layer in range(layers):
            name = f"blocks.{layer}"
            qkv = self.linear(self.layer_norm(x, f"{name}.norm1"), f"{name}.qkv")
            q, k, v = qkv.view(n, t, 3, heads, -1).permute(2, 0, 3, 1, 4)
            y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.linear(y.transpose(1, 2).reshape(n, t, -1), f"{name}.out")
            y = f.gelu(self.linear(self.layer_norm(x, f"{name}.norm2"), f"{name}.up"))
            x = x + self.linear(y, f"{name}.down")
        return self.linear(self.layer_norm(x, "norm"), "head")

    def gpt_step(self, x: Any, position: int, cache: Any, heads: int) -> Any:
        f, s = self.f, self.state
        n = len(x)
        x = f.embedding(x, s["token.weight"]) + s["position.weight"][position : position + 1]
        for layer, (keys, values) in enumerate(cache):
            name = f"blocks.{layer}"
            qkv = self.linear(self.layer_norm(x, f"{name}.norm1"), f"{name}.qkv")
            q, k, v = qkv.view(n, 1, 3, heads, -1).permute(2, 0, 3, 1, 4)
            keys[:, :, position : position + 1], values[:, :, position : position + 1] = k, v
            y = f.scaled_dot_product_attention(q, keys[:, :, : position + 1], values[:, :, : position + 1])
            x = x + self.linear(y.transpose(1, 2).reshape(n, 1, -1), f"{name}.out")
            y = f.gelu(self.linear(self.layer_norm(x, f"{name}.norm2"), f"{name}.up"))
            x = x + self.linear(y, f"{name}.down")
        return self.linear(self.layer_norm(x, "norm"), "head")

    def unet(self, x: Any) -> Any:
        f, s = self.f, self.state

        def double(x: Any, name: str) -> Any:
            x = f.relu(self.conv(x, f"{name}.conv1", 1, 1), inplace=True)
            return f.relu(self.conv(x, f"{name}.conv2", 1, 1), inplace=True)

        first = double(x, "down.0")
        second = double(f.max_pool2d(first, 2), "down.1")
        x = double(f.max_pool2d(second, 2), "down.2")
        for i, before in enumerate((second, first)):
            grown = f.conv_transpose2d(x, s[f"grow.{i}.weight"], s[f"grow.{i}.bias"], 2)
            x = double(self.torch.cat([before, grown], 1), f"up.{i}")
        return self.conv(x, "last")

    def lstm(self, x: Any, hidden: int) -> Any:
        state = cell = self.torch.zeros(x.shape[0], hidden)
        states = []
        for t in range(x.shape[1]):
            i, f, g, o = (self.linear(x[:, t], "of_input") + self.linear(state, "of_state")).chunk(4, -1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            state = o.sigmoid() * cell.tanh()
            states.append(state)
        return self.torch.stack(states, 1)


def _agree(name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    off = float(np.abs(ours - theirs).max() / max(1.0, float(np.abs(theirs).max())))
    if not off <= TOLERANCE:
        raise SystemExit(f"{name}: an output is {off:.1e} off torch's (of the greatest)")


def _memory(plan: Any, held: int) -> int:
    """Bytes of a plan's buffers, what they share counted once, less the bytes that are `held` already."""
    total = end = 0
    for first, last in sorted({(b.address, b.address + b.nbytes) for b in plan.buffers}):
        total += max(0, last - max(first, end))
        end = max(end, last)
    return total - held


def _peak(run: Callable[[], Any]) -> int:
    """The most bytes that a run of torch has allocated at a time."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    changes = sorted(
        (e.start_ns(), e.nbytes()) for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"
    )
    return max(itertools.accumulate(n for _, n in changes))


def _spread(state: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A state as after some training: statistics of batch norms that are not 0 and 1."""
    out = dict(state)
    for name, a in state.items():
        if name.endswith(("running_mean", "running_var")):
            out[name] = rng.uniform(0.5, 1.5, a.shape).astype(np.float32)
    return out


def _calls() -> Iterator[Contest]:
    """What a call of a jitted function takes beside its plan: at most 30 us and 1 us an argument."""
    import morok
    from morok import Tensor, nn

    x = Tensor(np.ones((2, 8), np.float32))
    more = [Tensor(np.full((2, 8), k, np.float32)) for k in range(20)]
    layer, deep = nn.Linear(8, 8), nn.Sequential(*[nn.Linear(8, 8) for _ in range(40)])
    cases: list[tuple[str, Callable[..., Any], list[Tensor]]] = [
        ("one layer", layer, [x]),
        ("40 layers", deep, [x]),
        ("20 arguments", lambda *xs: functools.reduce(Tensor.__add__, xs), more),
    ]
    for name, function, arguments in cases:
        jitted, plan = morok.jit(function), function(*arguments).prepare()
        jitted(*arguments)
        times = ([], [])
        for _ in range(3000):
            for run, spent in zip((functools.partial(jitted, *arguments), plan.execute), times, strict=True):
                start = time.perf_counter()
                run()
                spent.append(time.perf_counter() - start)
        beside = min(times[0]) - min(times[1])
        yield Contest(
            f"a call of a jitted function less its plan, {name}",
            functools.partial(float, beside),
            most=(30 + len(arguments)) * 1e-6,
            rounds=1,
            reports=True,
        )


def _tokens(models: Any, has_torch: bool) -> Iterator[Contest]:
    """A GPT with a cache, a token at a time, through jit: against its plan, and against torch."""
    import morok
    from morok import Tensor, Variable

    layers, heads, positions = 4, 8, 64
    model = models.GPT(layers, 256, heads, 1000, positions)
    tokens = np.random.default_rng(1).integers(0, 1000, (1, positions))
    at, cache, step = Variable("position", 0, positions - 1), model.cache(), morok.jit(model.step)
    given = [(Tensor(tokens[:, k : k + 1].copy()), at.bind(k)) for k in range(positions)]
    first = np.concatenate([step(x, k, cache).numpy().copy() for x, k in given], 1)
    _agree("GPT with a cache", first, model(Tensor(tokens)).numpy())
    state = [t for pair in cache for t in pair]
    plan = Tensor.prepare_batch([model.step(*given[0], cache), *state])
    called, planned, theirs = itertools.count(), itertools.count(), itertools.count()  # each goes through all positions

    def run() -> Any:
        x, k = given[next(called) % positions]
        return step(x, k, cache)

    def execute() -> Any:
        return plan.execute(None, {"position": next(planned) % positions})

    peers: dict[str, Callable[[], Any]] = {}
    if has_torch:
        import torch

        program, held = Torch(model.state_dict()), torch.zeros(layers, 2, 1, heads, positions, 256 // heads)
        rows = [torch.from_numpy(tokens[:, k : k + 1].copy()) for k in range(positions)]
        stepped = torch.inference_mode()(lambda k: program.gpt_step(rows[k], k, held, heads))
        _agree("GPT with a cache", first, np.concatenate([stepped(k).numpy() for k in range(positions)], 1))
        peers["torch"] = lambda: stepped(next(theirs) % positions)
    yield Contest(
        "GPT with a cache, a token through jit", run, peers, 0.8, "torch" if has_torch else "", rounds=300, typical=min
    )
    yield Contest(
        "the same, against its plan",
        run,
        {"its plan": execute},
        1.3,
        "its plan",
        or_more=50e-6,
        rounds=300,
        typical=min,
    )


def contests() -> Iterator[Contest]:
    from morok import Tensor

    models, rng = networks(), np.random.default_rng(0)
    Tensor.manual_seed(0)
    image, page = rng.standard_normal((1, 3, 96, 96), np.float32), rng.standard_normal((1, 1, 32, 32), np.float32)
    tokens, sequence = rng.integers(0, 1000, (1, 64)), rng.standard_normal((4, 3, 64), np.float32)
    rows: list[tuple[str, Any, np.ndarray, Callable[[Torch], Callable[[Any], Any]], float | None]] = [
        ("ResNet-18 (width 32, 96 x 96)", models.ResNet18(32), image, lambda t: t.resnet18, 0.9),
        (
            "GPT (4 layers, 256 wide, 64 positions)",
            models.GPT(4, 256, 8, 1000, 64),
            tokens,
            lambda t: functools.partial(t.gpt, layers=4, heads=8),
            0.8,
        ),
        ("UNet (8 channels, 32 x 32)", models.UNet(8), page, lambda t: t.unet, None),
        (
            "LSTM (3 steps, 64 wide)",
            models.LSTM(64, 64),
            sequence,
            lambda t: functools.partial(t.lstm, hidden=64),
            None,
        ),
    ]
    has_torch = importlib.util.find_spec("torch") is not None
    for name, model, x, of, goal in rows:
        state = _spread(model.state_dict(), rng)
        model.load_state_dict(state)
        output = model(Tensor(x))
        plan, peers = output.prepare(), {}
        if has_torch:
            import torch

            program, given = of(Torch(state)), torch.from_numpy(x)
            run = torch.inference_mode()(functools.partial(program, given))
            _agree(name, output.numpy(), run().numpy())
            ours, theirs = _memory(plan, x.nbytes + sum(a.nbytes for a in state.values())), _peak(run)
            print(f"{name}: peak memory {ours:,} bytes, torch {theirs:,}: {ours / theirs:.2f}", file=sys.stderr)
            peers["torch"] = run
        yield Contest(
            name, plan.execute, peers, goal=goal, against="torch" if has_torch else "", rounds=30, typical=min
        )
    yield from _tokens(models, has_torch)
    yield from _calls()
