"""Random expressions as text, as users write them: no name of the package is needed to make one."""

from __future__ import annotations

import random
from typing import Final

# The variables of each dtype; an index has bounds, or none.
VARIABLES: Final = {
    "index": (
        "x: index[0..=7]",
        "y: index[0..=3]",
        "z: index[-4..=4]",
        "u: index",
        "w: index[0..=1]",
        "Range(6, 0, Loop)",
    ),
    "i32": ("a: i32", "b: i32[0..=100]", "c: i32"),
    "u8": ("d: u8", "e: u8"),
    "i64": ("g: i64", "h: i64"),
    "f32": ("f: f32", "k: f32"),
    "f64": ("m: f64", "n: f64"),
    "f16": ("o: f16",),
    "bool": ("p: bool", "q: bool", "r: bool"),
}
INTEGERS: Final = ("index", "i32", "u8", "i64")
FLOATS: Final = ("f32", "f64", "f16")
WHOLE: Final = ("Add", "Add", "Sub", "Mul", "Mul", "Idiv", "Mod", "FloorDiv", "FloorMod", "Max", "Min")
BITS: Final = ("And", "Or", "Xor", "Shl", "Shr")
REAL: Final = ("Add", "Sub", "Mul", "Fdiv", "Max", "Min")
OF_ONE_FLOAT: Final = ("Neg", "Sqrt", "Reciprocal", "Abs", "Square", "Trunc", "Floor", "Exp2", "Log2", "Sin")
COMPARISONS: Final = ("Lt", "Le", "Gt", "Ge", "Eq", "Ne")
CONSTANTS: Final = (-8, -6, -3, -2, -1, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 12, 16)
REALS: Final = ("0.0", "1.0", "-1.0", "2.0", "0.5", "3.25", "-0.0")


class Expressions:
    """Texts of one random source; a variable is declared where it first stands in a text."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.declared: set[str] = set()

    def text(self) -> str:
        """One expression: an index expression half of the time, of these half products of sums."""
        self.declared.clear()
        kind = self.rng.random()
        if kind < 0.25:
            return self.products(self.rng.randrange(0, 2))
        return self.tree("index" if kind < 0.5 else self.rng.choice(list(VARIABLES)), self.rng.randrange(2, 6))

    def leaf(self, dtype: str) -> str:
        declaration = self.rng.choice(VARIABLES[dtype])
        name = declaration.partition(":")[0]
        if name in self.declared:
            return name
        if ":" in declaration:
            self.declared.add(name)
        return declaration

    def constant(self, dtype: str) -> str:
        if dtype == "bool":
            return self.rng.choice(("true", "false"))
        if dtype in FLOATS:
            return f"Const({self.rng.choice(REALS)}, {dtype})"
        value = self.rng.choice(CONSTANTS)
        return f"Const({abs(value) if dtype == 'u8' else value}, {dtype})"

    def tree(self, dtype: str, depth: int) -> str:
        """Any shape, so deep at most."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.1:
            return self.leaf(dtype) if rng.random() < 0.7 else self.constant(dtype)
        kind = rng.random()
        if kind < 0.1:
            return (
                f"Where({self.tree('bool', depth - 1)}, {self.tree(dtype, depth - 1)}, {self.tree(dtype, depth - 1)})"
            )
        if dtype == "bool":
            return self.condition(depth)
        if kind < 0.2 and dtype != "index":
            return f"Cast({self.tree(rng.choice([d for d in VARIABLES if d != 'index']), depth - 1)}, {dtype})"
        if kind < 0.3:
            return f"{rng.choice(OF_ONE_FLOAT) if dtype in FLOATS else 'Neg'}({self.tree(dtype, depth - 1)})"
        op = rng.choice(REAL if dtype in FLOATS else WHOLE if dtype == "index" or rng.random() < 0.7 else BITS)
        return self.pair(op, dtype, depth)

    def condition(self, depth: int) -> str:
        kind = self.rng.random()
        if kind < 0.5:
            dtype = self.rng.choice([d for d in VARIABLES if d != "bool"])
            return self.pair(self.rng.choice(COMPARISONS), dtype, depth)
        return (
            f"Not({self.tree('bool', depth - 1)})"
            if kind < 0.6
            else self.pair(self.rng.choice(BITS[:3]), "bool", depth)
        )

    def pair(self, op: str, dtype: str, depth: int) -> str:
        """An op of two operands; of three times twice by a constant, where one simplifies most."""
        first = self.tree(dtype, depth - 1)
        if op in ("Idiv", "Mod", "FloorDiv", "FloorMod", "Shl", "Shr") and self.rng.random() < 0.7:
            return f"{op}({first}, Const({self.rng.randrange(1, 7)}, {dtype}))"
        return f"{op}({first}, {self.tree(dtype, depth - 1)})"

    def sums(self, depth: int) -> str:
        terms = []
        for _ in range(self.rng.randrange(1, 4)):
            term = self.leaf("index") if depth == 0 or self.rng.random() < 0.7 else self.products(depth - 1)
            terms.append(f"Mul({term}, {self.constant('index')})" if self.rng.random() < 0.4 else term)
        text = terms[0]
        for term in terms[1:]:
            text = f"Add({text}, {term})"
        return text if self.rng.random() < 0.4 else f"Add({text}, {self.constant('index')})"

    def products(self, depth: int) -> str:
        """Two to four sums, multiplied, and perhaps divided."""
        text = self.sums(depth)
        for _ in range(self.rng.randrange(1, 4)):
            text = f"Mul({text}, {self.sums(depth)})"
        if self.rng.random() < 0.75:
            return text
        divisor = f"Const({self.rng.randrange(2, 13)}, index)" if self.rng.random() < 0.6 else self.sums(0)
        return f"{self.rng.choice(('Idiv', 'Mod'))}({text}, {divisor})"
