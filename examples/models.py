"""Four well-known networks, written with `morok.nn`: ResNet-18, a GPT, a UNet and an LSTM.

Each takes its sizes as arguments. Their tensors have the names and shapes that torch's layers have, so `load_state_dict` reads
what was trained there. Run as a program, this file builds small ones with random weights and prints what they compute.
"""

from __future__ import annotations

import sys

import numpy as np

from morok import Tensor, UOp, nn


class Residual(nn.Module):
    """[N, before, H, W] -> [N, after, H / stride, W / stride]: two convolutions, added to their input (He et al. 2016)."""

    def __init__(self, before: int, after: int, stride: int = 1) -> None:
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm(after)
        self.shortcut: list[nn.Module] = []
        if stride != 1 or before != after:
            self.shortcut = [nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm(after)]

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        for layer in self.shortcut:
            x = layer(x)
        return (y + x).relu()


class ResNet18(nn.Module):
    """Images [N, 3, H, W] -> scores [N, classes]; `width` channels after the first convolution (64 in the paper)."""

    def __init__(self, width: int = 64, classes: int = 1000) -> None:
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm(width)
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        self.blocks: list[nn.Module] = []
        for stage in range(4):
            self.blocks.append(Residual(widths[stage], widths[stage + 1], 1 if stage == 0 else 2))
            self.blocks.append(Residual(widths[stage + 1], widths[stage + 1]))
        self.fc = nn.Linear(8 * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.bn1(self.conv1(x)).relu().max_pool2d(3, 2, padding=1)
        for block in self.blocks:
            x = block(x)
        return self.fc(x.mean((2, 3)))


class Decoder(nn.Module):
    """[N, T, width] -> [N, T, width]: attention to earlier positions, then two linear layers, each behind a norm and added."""

    def __init__(self, width: int, heads: int) -> None:
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.added(x, self.attended(x))

    def attended(self, x: Tensor) -> Tensor:
        """[N, T, width]: of each position, what it sees in itself and earlier ones."""
        n, t, width = x.shape
        heads = self.qkv(self.norm1(x)).reshape(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = heads[0].scaled_dot_product_attention(heads[1], heads[2], is_causal=True)
        return attended.permute(0, 2, 1, 3).reshape(n, t, width)

    def step(self, x: Tensor, position: UOp, keys: Tensor, values: Tensor) -> Tensor:
        """The same for one token, [N, 1, width], at a position; `keys` and `values`, [N, heads, positions, width / heads], hold
        those of earlier ones, and get its own.
        """
        n, _, width = x.shape
        query, key, value = (
            self.qkv(self.norm1(x)).reshape(n, 3, self.heads, 1, width // self.heads).permute(1, 0, 2, 3, 4)
        )
        keys[:, :, position], values[:, :, position] = key[:, :, 0], value[:, :, 0]
        seen = (Tensor.arange(keys.shape[2]) <= Tensor(position)).reshape(1, -1)
        attended = query.scaled_dot_product_attention(keys, values, seen)
        return self.added(x, attended.reshape(n, 1, width))

    def added(self, x: Tensor, attended: Tensor) -> Tensor:
        """The input, with what it sees and then the two linear layers added."""
        x = x + self.out(attended)
        return x + self.down(self.up(self.norm2(x)).gelu())


class GPT(nn.Module):
    """Tokens [N, T] -> scores of the next token at each position, [N, T, tokens] (Radford et al. 2019)."""

    def __init__(self, layers: int, width: int, heads: int, tokens: int, positions: int) -> None:
        self.token, self.position = nn.Embedding(tokens, width), nn.Embedding(positions, width)
        self.blocks = [Decoder(width, heads) for _ in range(layers)]
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, tokens, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.token(x) + self.position.weight[: x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def cache(self, n: int = 1) -> list[tuple[Tensor, Tensor]]:
        """Of each layer the keys and the values of `n` sequences, none yet: `step` fills them."""
        positions, width = self.position.weight.shape
        heads = self.blocks[0].heads
        sizes = n, heads, positions, width // heads
        return [(Tensor.zeros(*sizes), Tensor.zeros(*sizes)) for _ in self.blocks]

    def step(self, x: Tensor, position: UOp, cache: list[tuple[Tensor, Tensor]]) -> Tensor:
        """A token [N, 1] at a position, `Variable("position", 0, positions - 1).bind(0)` and so on -> scores of the next one,
        [N, 1, tokens]. The cache holds what came before: what `forward` computes of a whole sequence, a position at a time.

        For `morok.jit`: the position is no part of the plan, and the cache is written in place.
        """
        x = self.token(x) + self.position.weight[position]
        for block, (keys, values) in zip(self.blocks, cache, strict=True):
            x = block.step(x, position, keys, values)
        return self.head(self.norm(x))


class Double(nn.Module):
    """[N, before, H, W] -> [N, after, H, W]: two convolutions with their ReLUs."""

    def __init__(self, before: int, after: int) -> None:
        self.conv1, self.conv2 = nn.Conv2d(before, after, 3, padding=1), nn.Conv2d(after, after, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv2(self.conv1(x).relu()).relu()


class UNet(nn.Module):
    """Images [N, 1, H, W] -> [N, 1, H, W], H and W divisible by 4 (Ronneberger et al. 2015)."""

    def __init__(self, width: int = 8) -> None:
        self.down = [Double(1, width), Double(width, 2 * width), Double(2 * width, 4 * width)]
        self.grow = [nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 2, 2)]
        self.up = [Double(4 * width, 2 * width), Double(2 * width, width)]
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.down[0](x)
        second = self.down[1](first.max_pool2d(2))
        x = self.down[2](second.max_pool2d(2))
        for before, grow, block in zip((second, first), self.grow, self.up, strict=True):
            x = block(Tensor.concat([before, grow(x)], 1))
        return self.last(x)


class LSTM(nn.Module):
    """Sequences [N, T, inputs] -> [N, T, hidden], from a state of zeros (Hochreiter and Schmidhuber 1997)."""

    def __init__(self, inputs: int, hidden: int) -> None:
        self.hidden = hidden
        self.of_input, self.of_state = nn.Linear(inputs, 4 * hidden), nn.Linear(hidden, 4 * hidden)

    def forward(self, x: Tensor) -> Tensor:
        state = cell = Tensor.zeros(x.shape[0], self.hidden)
        states = []
        for t in range(int(x.shape[1])):
            i, f, g, o = (self.of_input(x[:, t]) + self.of_state(state)).chunk(4, -1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            state = o.sigmoid() * cell.tanh()
            states.append(state)
        return Tensor.stack(states, 1)


def main() -> int:
    rng = np.random.default_rng(0)
    Tensor.manual_seed(0)
    images = rng.standard_normal((2, 3, 32, 32), np.float32)
    programs = {
        "ResNet-18": ResNet18(8, 10)(Tensor(images)),
        "GPT": GPT(2, 32, 4, 50, 16)(Tensor(rng.integers(0, 50, (2, 16)))),
        "UNet": UNet(4)(Tensor(images[:, :1])),
        "LSTM": LSTM(8, 16)(Tensor(rng.standard_normal((2, 3, 8), np.float32))),
    }
    for name, output in programs.items():
        kernels = len(output.kernels())
        values = output.numpy()
        print(f"{name}: {values.shape}, mean {values.mean():+.4f}, {kernels} kernels")
        if not np.isfinite(values).all():
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
