"""Command lines of every command: right ones, and wrong ones. Each is run in a folder with the files of FILES and `examples/`."""

from __future__ import annotations

from typing import Final

COMMANDS: Final = (
    *("prove", "measure", "check", "recheck", "mutate", "attack", "fmt", "explain", "simplify"),
    *("run", "trace", "bisect", "viz", "docs", "rules", "pipeline", "config", "doctor"),
)
FILES: Final = {
    "good.rules": """group good "true ones"

back: Sub(Add(x: i32, y), y) ~> x
    "wrapping included"

double: Add(x: int, x) ~> Shl(x, 1)
    "adding a number to itself shifts it by one; wrapping included"
    example Add(x: i32, x) ~> Shl(x: i32, 1)
""",
    "wrong.rules": "group g\n\na: Add(x: int ~> x\n\nb: Sub(x: int, y ~> x\n\nc: Ad(x: i32, y) ~> z\n",
    "untyped.rules": 'group g "mistakes"\n\na: Add(x: i32, y) ~> z\n\nb: Add(x: i32, y: f32) ~> x\n\nc: Not(x: f32) ~> x\n',
    "false.rules": 'group g "false"\n\nhalve: Idiv(x: int, 2) ~> Shr(x, 1)\n    "not for negative ones"\n',
    "loose.rules": 'group l   "layout"\na:   Add( x:i32 , y )~>Add(y,x)\n',
    "never.rules": 'group n "never"\n\na: Add(x: i32, @const(c)) if c > 3 and c < 2 ~> x\n    "its guard never holds"\n',
    "raises.py": "def f():\n    return 1 / 0\n\nf()\n",
    "shapes.py": "from morok import Tensor\n\n(Tensor([1.0, 2.0]) + Tensor([1.0, 2.0, 3.0])).realize()\n",
    "small.py": "from morok import Tensor\n\nprint((Tensor([[1.0, 2.0], [3.0, 4.0]]) @ Tensor([1.0, 2.0]) + 1).sum().item())\n",
    "ends.py": "import sys\n\nprint('out')\nsys.exit(7)\n",
}
EXAMPLES: Final = (
    *(
        "add",
        "book_hello",
        "book_inspect",
        "book_linear",
        "book_matmul",
        "book_mnist",
        "book_shapes",
        "convnet",
        "digits",
        "models",
    ),
)
CODES: Final = ((0, 1), (100, 118), (200, 211), (300, 305), (400, 406), (500, 515), (600, 607), (900, 904))
LINES: Final = (
    "",
    "--help",
    "--version",
    "nothing",
    "prov",
    *(f"{name} --help" for name in COMMANDS),
    *(f"{name} --nonsense" for name in COMMANDS),
    *(f"{name} nowhere.rules" for name in ("prove", "check", "fmt", "docs", "measure", "mutate")),
    *(f"{name} nowhere.py" for name in ("run", "trace", "bisect", "viz")),
    *(f"{name} {file}" for name in ("run", "trace", "bisect") for file in ("raises.py", "shapes.py", "ends.py", "good.rules")),
    *(f"run examples/{name}.py" for name in EXAMPLES),
    "trace examples/add.py",
    "trace --json examples/add.py",
    "trace --json small.py",
    "trace examples/book_linear.py",
    "bisect small.py",
    "bisect --json small.py",
    "bisect examples/add.py",
    *(
        f"{name}{flag} {file}.rules"
        for file in ("good", "wrong", "untyped", "false", "never")
        for name in ("prove", "check", "check --strict")
        for flag in ("", " --json")
    ),
    *(f"prove --format {name} good.rules" for name in ("text", "jsonl", "junit", "sarif", "github", "prose")),
    *(f"prove --format {name} wrong.rules" for name in ("text", "jsonl", "junit", "sarif", "github")),
    *(f"prove --format {name} false.rules" for name in ("text", "jsonl", "junit", "sarif", "github")),
    "prove --jobs 0 good.rules",
    "prove --jobs x good.rules",
    "prove --only *.back good.rules",
    "prove --only nothing good.rules",
    "prove --frozen good.rules",
    "prove --budget 1 --no-cache good.rules",
    "prove --smt2 asked good.rules",
    "prove --write good.rules",
    "prove --frozen good.rules",
    "prove --compare good.rules",
    "prove",
    "prove --json",
    "check",
    "check --json",
    "fmt --check good.rules loose.rules",
    "fmt --check --json good.rules loose.rules wrong.rules",
    "fmt loose.rules",
    "fmt loose.rules --json",
    "simplify 'Idiv(Add(Mul(x: index[0..=31], 4), 3), 4)'",
    "simplify --trace 'Idiv(Add(Mul(x: index[0..=31], 4), 3), 4)'",
    "simplify --trace --json 'Idiv(Add(Mul(x: index[0..=31], 4), 3), 4)'",
    "simplify 'Add('",
    "simplify --json 'Ad(x: i32, 3)'",
    "simplify 'Add(x: i32, x)' --rules good.rules",
    "simplify 'Add(x: i32, x)' --rules false.rules",
    "simplify 'Add(x: i32, x)' --rules wrong.rules --json",
    "explain add_zero",
    "explain add_zero --json",
    "explain add_zero --smt2",
    "explain movement.permute",
    "explain movement.permute --json",
    "explain good.back --rules good.rules",
    "explain nothing",
    "explain MRK999 --json",
    *(f"explain MRK{code:03}" for first, last in CODES for code in range(first, last)),
    "rules",
    "rules --json",
    "rules --count",
    "rules *zero*",
    "rules no_such_rule",
    "rules --show-code add_zero",
    "rules --show-code movement.permute",
    "pipeline",
    "pipeline --json",
    "config",
    "config --json",
    "config x",
    "doctor",
    "doctor --json",
    "docs good.rules --out pages",
    "docs --out book",
    "docs good.rules --out /proc/nowhere --json",
    "trace --save trace.json small.py",
    "viz trace.json",
    "viz good.rules --json",
    "measure --only *exp2* --dtype f16",
    "recheck --sample 12 --seed net --limit 3000 --jobs 1",
    "mutate good.rules --sample 6 --seed net --jobs 1",
    "attack --seed 5 --rules 40 --jobs 1",
    "attack --seed 5 --rules 40 --jobs 1 --format json",
    "attack --rules x",
)  # fmt: skip
TINY: Final = ("", "--version", "nothing", "simplify 'Add('", "explain MRK101")
