"""Random tensor programs as Python text, over `Tensor` and `np`: one statement a line, the result in the last name."""

from __future__ import annotations

import math
import random
from typing import Final

SIZES: Final = (1, 2, 3, 4, 5, 7, 8, 8, 16, 17, 32, 33, 64, 100)
MOST: Final = 20_000  # elements of a value
DTYPES: Final = ("f32", "f32", "f32", "i32", "f64", "u8", "bool", "f16", "i64")
ELEMENTWISE: Final = (
    "{x}.relu()",
    "-{x}",
    "{x}.abs()",
    "{x} + 2",
    "{x} * 3",
    "3 - {x}",
    "{x}.maximum(1)",
    "({x} > 1).where({x}, 0)",
    "{x}.cast('f32') / 3",
    "{x}.cast('f32').exp()",
    "{x}.cast('f32').abs().sqrt()",
    "{x}.cast('f32').sin()",
    "{x}.cast('f32').gelu()",
    "{x}.cast('f32').sigmoid()",
    "{x}.cast('f64').tanh()",
    "{x}.cast('i32') // 3",
    "{x}.cast('i32') % 5",
    "{x}.cast('i64') << 2",
    "{x}.cast('i32') ^ 5",
    "{x}.cast('f16')",
    "{x}.cast('bf16')",
    "{x} != 1",
    "{x}.contiguous()",
)
REDUCTIONS: Final = (
    "{x}.cast('f32').sum({a})",
    "{x}.max({a})",
    "{x}.min({a})",
    "{x}.cast('f32').mean({a})",
    "{x}.argmax({a})",
    "{x}.cast('i32').prod({a})",
    "{x}.any({a})",
    "{x}.cast('f64').var({a})",
)
ALONG: Final = (
    "{x}.cast('f32').softmax({a})",
    "{x}.cast('f32').log_softmax({a})",
    "{x}.cast('i64').cumsum({a})",
    "{x}.cummax({a})",
    "{x}.flip({a})",
    "{x}.cast('f32').sort({a})[0]",
)


class Program:
    """One program of a seed: its `lines`, with the shapes of the values that they name."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.shapes: list[tuple[int, ...]] = []
        self.leaf(self.shape())
        for _ in range(self.rng.randrange(2, 9)):
            self.step()

    def text(self) -> str:
        return "\n".join(self.lines)

    def shape(self) -> tuple[int, ...]:
        shape = [self.rng.choice(SIZES) for _ in range(self.rng.choice((1, 2, 2, 2, 3, 4)))]
        while math.prod(shape) > MOST:
            shape[shape.index(max(shape))] = 2
        return tuple(shape)

    def add(self, text: str, shape: tuple[int, ...]) -> int:
        self.lines.append(f"v{len(self.shapes)} = {text}")
        self.shapes.append(shape)
        return len(self.shapes) - 1

    def leaf(self, shape: tuple[int, ...]) -> int:
        dtype = self.rng.choice(DTYPES)
        return self.add(f"numbers({self.rng.randrange(10**6)}, {shape}, {dtype!r})", shape)

    def step(self) -> None:
        """A value made of the last one, or now and then of an earlier one."""
        at = len(self.shapes) - 1 if self.rng.random() < 0.8 else self.rng.randrange(len(self.shapes))
        kinds = (self.one, self.one, self.two, self.two, self.reduction, self.along, self.view, self.view, self.product)
        self.rng.choice((*kinds, self.written, self.joined, self.taken))(f"v{at}", self.shapes[at])

    def one(self, x: str, shape: tuple[int, ...]) -> None:
        self.add(self.rng.choice(ELEMENTWISE).format(x=x), shape)

    def two(self, x: str, shape: tuple[int, ...]) -> None:
        """With an earlier value of this shape, or a new one that broadcasts to it."""
        same = [f"v{k}" for k, s in enumerate(self.shapes) if s == shape]
        if self.rng.random() < 0.5:
            other = self.rng.choice(same)
        else:
            begin = self.rng.randrange(len(shape) + 1)
            other = f"v{self.leaf(tuple(1 if self.rng.random() < 0.3 else n for n in shape[begin:]))}"
        op = self.rng.choice(
            ("{x} + {y}", "{x} * {y}", "{x}.maximum({y})", "{x}.cast('f32') - {y}", "({x} < {y}).where({x}, {y})")
        )
        self.add(op.format(x=x, y=other), shape)

    def reduction(self, x: str, shape: tuple[int, ...]) -> None:
        if shape:
            axis = self.rng.randrange(len(shape))
            self.add(self.rng.choice(REDUCTIONS).format(x=x, a=axis), shape[:axis] + shape[axis + 1 :])

    def along(self, x: str, shape: tuple[int, ...]) -> None:
        if shape:
            self.add(self.rng.choice(ALONG).format(x=x, a=self.rng.randrange(len(shape))), shape)

    def view(self, x: str, shape: tuple[int, ...]) -> None:
        kind = self.rng.randrange(5)
        if kind == 0:
            order = self.rng.sample(range(len(shape)), len(shape))
            self.add(f"{x}.permute({tuple(order)})", tuple(shape[k] for k in order))
        elif kind == 1:
            size = math.prod(shape)
            first = self.rng.choice([k for k in range(1, 13) if size % k == 0])
            self.add(f"{x}.reshape({first}, {size // first})", (first, size // first))
        elif kind == 2 and math.prod(shape) < MOST // 4:
            edges = [(self.rng.randrange(3), self.rng.randrange(3)) for _ in shape]
            self.add(f"{x}.pad({edges})", tuple(n + a + b for n, (a, b) in zip(shape, edges, strict=True)))
        elif kind == 3 and shape:
            step = self.rng.choice((1, 2, 3))
            begin = self.rng.randrange(shape[0])
            self.add(f"{x}[{begin}::{step}]", (len(range(begin, shape[0], step)), *shape[1:]))
        elif math.prod(shape) < MOST // 4:
            self.add(f"{x}.reshape(1, *{x}.shape).expand(3, *{x}.shape)", (3, *shape))

    def product(self, x: str, shape: tuple[int, ...]) -> None:
        if not shape or math.prod(shape[:-1]) * 33 > MOST:
            return
        columns = self.rng.choice((1, 3, 8, 16, 33))
        weight = self.leaf((shape[-1], columns))
        self.add(f"{x}.cast('f32') @ v{weight}.cast('f32')", (*shape[:-1], columns))

    def written(self, x: str, shape: tuple[int, ...]) -> None:
        """A copy of which the first elements along the first axis are written over."""
        if shape:
            at = self.add(f"{x}.contiguous()", shape)
            self.lines.append(f"v{at}[0] = {self.rng.randrange(3)}")

    def joined(self, x: str, shape: tuple[int, ...]) -> None:
        if shape and math.prod(shape) < MOST // 2:
            self.add(f"Tensor.concat([{x}, {x}.flip(0)], 0)", (2 * shape[0], *shape[1:]))

    def taken(self, x: str, shape: tuple[int, ...]) -> None:
        """Elements chosen by a tensor of places."""
        if shape and math.prod(shape[1:]) * 5 < MOST:
            places = [self.rng.randrange(shape[0]) for _ in range(5)]
            self.add(f"{x}[Tensor({places})]", (5, *shape[1:]))
