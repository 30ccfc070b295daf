"""A program for each error that a public docstring names: what raises it."""

from __future__ import annotations

from typing import Final

SETUP: Final = '''
import pathlib, tempfile
import numpy as np
import morok
from morok import *
from morok import nn
numbers, two, floats, bools = Tensor([1, 2, 3]), Tensor([1, 2]), Tensor([1.0, 2.0, 3.0]), Tensor([True, False, True])
matrix, elsewhere, nothing = Tensor([[1, 2], [3, 4]]), Tensor([1, 2, 3], device="CPU:1"), Tensor([])
image, kernel, channels = Tensor.ones(1, 1, 4, 4), Tensor.ones(1, 1, 2, 2), Tensor.ones(1, 4)
node, real = UOp.var("x", dtypes.i32), UOp.var("y", dtypes.f32)
square = [[1.0, 2.0], [3.0, 4.0]]
def pack(text):
    file = pathlib.Path(tempfile.mkdtemp()) / "mine.rules"
    file.write_text(text)
    return file
def unproved():
    from morok.dsl.check import check_file
    from morok.rewrite.ruleset import RuleSet
    return RuleSet.of(check_file(pack(FALSE)).rules())
FALSE = """
group g "false"

r: Add(x: i8, 1) ~> x
"""
CYCLE = """
group g "forms that are each other's"

there: Mul(x: i32, 2) ~> Add(x, x)
back: Add(x: i32, x) ~> Mul(x, 2)
"""
CALLS = """
helpers "untrusted_helpers"

extern seven(x: const) -> (q: const)
    ensures q == x

group g "a helper of a module that nobody trusts"

r: Add(@const(x): index, y)
    let q = seven(x)
    ~> Add(const(q, index), y)
"""
HELPERS = """
from morok import helper

@helper
def seven(x: int) -> int:
    return x
"""
def calls():
    file = pack(CALLS)
    (file.parent / "untrusted_helpers.py").write_text(HELPERS)
    import sys
    sys.path.insert(0, str(file.parent))
    return file
'''


def _methods(text: str) -> list[str]:
    return [f"Tensor.{name}" for name in text.split()]


_BINARY = _methods("""
    bitwise_left_shift bitwise_right_shift bitwise_and bitwise_or bitwise_xor
    less less_equal greater greater_equal add sub mul div
    floor_divide mod pow eq ne maximum minimum logical_and logical_or
    logical_xor copysign logaddexp atan2 hypot
""")
_INTEGERS_ONLY = _methods("bitwise_left_shift bitwise_right_shift bitwise_and bitwise_or bitwise_xor")
_ALONG_AN_AXIS = _methods("""
    sum prod max min any all count_nonzero mean var std
    argmax argmin softmax log_softmax logsumexp cumsum cumprod cummax
    cummin argsort sort unstack diff layernorm rms_norm batchnorm
    vector_norm expand_dims unsqueeze flip
""")
_MADE = ["Tensor.zeros", "Tensor.ones", "Tensor.empty", "Tensor.rand", "Tensor.randn"]
_LAYERS = (
    "Linear(0, 1)",
    "Embedding(0, 1)",
    "Conv2d(0, 1, 1)",
    "ConvTranspose2d(0, 1, 1)",
    "LayerNorm(0)",
    "RMSNorm(0)",
)


def _method(name: str) -> str:
    return name.partition(".")[2]


RAISING: Final[dict[tuple[str, str], str]] = {
    **{(name, "ShapeError"): f"numbers.{_method(name)}(two)" for name in _BINARY},
    **{(name, "DeviceError"): f"numbers.{_method(name)}(elsewhere)" for name in _BINARY},
    **{(name, "DTypeError"): f"floats.{_method(name)}(1)" for name in _INTEGERS_ONLY},
    **{(name, "AxisError"): f"floats.{_method(name)}(axis=7)" for name in _ALONG_AN_AXIS},
    **{(name, "ShapeError"): f"Tensor.{_method(name)}(-1)" for name in _MADE},
    **{(name, "DTypeError"): f"Tensor.{_method(name)}(2, dtype='i32')" for name in ("Tensor.rand", "Tensor.randn")},
    **{(name, "DTypeError"): f"Tensor.{_method(name)}(2, dtype='nonsense')" for name in _MADE[:3]},
    **{(layer.partition("(")[0], "ShapeError"): f"nn.{layer}" for layer in _LAYERS},
    # Elementwise.
    ("Tensor.sub", "DTypeError"): "bools.sub(bools)",
    ("Tensor.neg", "DTypeError"): "bools.neg()",
    ("Tensor.bitwise_invert", "DTypeError"): "~floats",
    ("Tensor.cast", "DTypeError"): "numbers.cast('nonsense')",
    ("Tensor.astype", "DTypeError"): "numbers.astype('nonsense')",
    ("Tensor.bitcast", "DTypeError"): "numbers.bitcast('i8')",
    ("Tensor.clip", "ShapeError"): "numbers.clip(two)",
    ("Tensor.clamp", "ShapeError"): "numbers.clamp(two)",
    ("Tensor.where", "DTypeError"): "numbers.where(1, 2)",
    ("Tensor.where", "ShapeError"): "bools.where(two, 0)",
    ("Tensor.masked_fill", "DTypeError"): "numbers.masked_fill(numbers, 0)",
    ("Tensor.masked_fill", "ShapeError"): "numbers.masked_fill([True, False], 0)",
    ("Tensor.pad", "ShapeError"): "numbers.pad([(1, -1)])",
    ("Tensor.pad", "ArgumentTypeError"): "numbers.pad(1)",
    ("Tensor.sign", "DTypeError"): "bools.sign()",
    # Made of numbers.
    ("Tensor.full", "ShapeError"): "Tensor.full((-1,), 0)",
    ("Tensor.full", "DTypeError"): "Tensor.full((2,), 0, 'nonsense')",
    ("Tensor.arange", "ShapeError"): "Tensor.arange(1, 2, 0)",
    ("Tensor.linspace", "ShapeError"): "Tensor.linspace(0, 1, -1)",
    ("Tensor.eye", "ShapeError"): "Tensor.eye(-1)",
    ("Tensor.contiguous", "ConfigError"): "numbers.contiguous('UPCAST')",
    ("Tensor.contiguous", "OptError"): "(numbers + 1).contiguous(Opt(OptOp.UPCAST, 7, 4)).realize()",
    ("Tensor.manual_seed", "ShapeError"): "Tensor.manual_seed('seed')",
    ("Tensor.uniform", "ShapeError"): "Tensor.uniform(2, low=1, high=0)",
    ("Tensor.uniform", "DTypeError"): "Tensor.uniform(2, dtype='i32')",
    ("Tensor.randint", "ShapeError"): "Tensor.randint(2, low=1, high=1)",
    ("Tensor.randint", "DTypeError"): "Tensor.randint(2, dtype='f32')",
    ("Tensor.normal", "ShapeError"): "Tensor.normal(2, std=-1.0)",
    ("Tensor.normal", "DTypeError"): "Tensor.normal(2, dtype='i32')",
    ("Tensor.randperm", "ShapeError"): "Tensor.randperm(-1)",
    ("Tensor.dropout", "ShapeError"): "floats.dropout(2.0)",
    # Views.
    ("Tensor.reshape", "ShapeError"): "numbers.reshape(2, 2)",
    ("Tensor.flatten", "AxisError"): "numbers.flatten(7)",
    ("Tensor.expand", "ShapeError"): "numbers.expand(2)",
    ("Tensor.broadcast_to", "ShapeError"): "numbers.broadcast_to((2,))",
    ("Tensor.permute", "ShapeError"): "matrix.permute(0, 0)",
    ("Tensor.permute_dims", "ShapeError"): "matrix.permute_dims((0, 0))",
    ("Tensor.transpose", "AxisError"): "matrix.transpose(7, 0)",
    ("Tensor.mT", "AxisError"): "numbers.mT",
    ("Tensor.matrix_transpose", "AxisError"): "numbers.matrix_transpose()",
    ("Tensor.moveaxis", "AxisError"): "matrix.moveaxis(7, 0)",
    ("Tensor.flip", "ShapeError"): "matrix.flip(0, 0)",
    ("Tensor.shrink", "ShapeError"): "numbers.shrink([(0, 4)])",
    ("Tensor.shrink", "ArgumentTypeError"): "numbers.shrink(1)",
    ("Tensor.squeeze", "ShapeError"): "numbers.squeeze(0)",
    ("Tensor.repeat_interleave", "AxisError"): "numbers.repeat_interleave(2, 7)",
    # Reductions and products.
    ("Tensor.sum", "ShapeError"): "matrix.sum((0, 0))",
    ("Tensor.sum", "DTypeError"): "matrix.sum(dtype=bool)",
    ("Tensor.prod", "ShapeError"): "matrix.prod((0, 0))",
    ("Tensor.prod", "DTypeError"): "matrix.prod(dtype=bool)",
    **{(f"Tensor.{name}", "ShapeError"): f"nothing.{name}()" for name in ("max", "min", "argmax", "argmin")},
    ("Tensor.var", "ShapeError"): "floats.var(correction=float('nan'))",
    ("Tensor.std", "ShapeError"): "floats.std(correction=float('nan'))",
    ("Tensor.matmul", "ShapeError"): "numbers @ two",
    ("Tensor.matmul", "DeviceError"): "numbers @ elsewhere",
    ("Tensor.dot", "ShapeError"): "numbers.dot(two)",
    ("Tensor.linear", "ShapeError"): "numbers.linear(matrix)",
    ("Tensor.linear", "DTypeError"): "numbers.linear([[1, 2, 3]])",
    ("Tensor.outer", "DeviceError"): "numbers.outer(elsewhere)",
    ("Tensor.tril", "AxisError"): "numbers.tril()",
    ("Tensor.triu", "AxisError"): "numbers.triu()",
    ("Tensor.einsum", "ShapeError"): "Tensor.einsum('ij->i', numbers)",
    ("Tensor.einsum", "DTypeError"): "Tensor.einsum('i->i', [1])",
    ("Tensor.diagonal", "ShapeError"): "matrix.diagonal(axis1=0, axis2=0)",
    ("Tensor.trace", "AxisError"): "numbers.trace()",
    ("Tensor.vecdot", "ShapeError"): "numbers.vecdot(two)",
    ("Tensor.tensordot", "ShapeError"): "numbers.tensordot(two, 1)",
    ("Tensor.vector_norm", "ShapeError"): "nothing.vector_norm(ord=-float('inf'))",
    ("Tensor.gelu", "DTypeError"): "floats.gelu('about')",
    # Losses, layers of one call.
    **{(f"Tensor.{name}", "ShapeError"): f"floats.{name}(two)" for name in ("mse_loss", "l1_loss")},
    **{(f"Tensor.{name}", "DTypeError"): f"floats.{name}(floats, 'most')" for name in ("mse_loss", "l1_loss")},
    **{
        (f"Tensor.binary_cross_entropy{more}", error): f"floats.binary_cross_entropy{more}({arguments})"
        for more in ("", "_with_logits")
        for error, arguments in (("ShapeError", "two"), ("DTypeError", "floats, 'most'"))
    },
    ("Tensor.nll_loss", "ShapeError"): "matrix.nll_loss(numbers)",
    ("Tensor.nll_loss", "DTypeError"): "matrix.nll_loss([0.5, 1.0])",
    ("Tensor.cross_entropy", "ShapeError"): "matrix.cross_entropy(numbers)",
    ("Tensor.cross_entropy", "DTypeError"): "matrix.cross_entropy([0, 1], reduction='most')",
    ("Tensor.batchnorm", "ShapeError"): "matrix.batchnorm(numbers)",
    ("Tensor.group_norm", "ShapeError"): "channels.group_norm(3)",
    ("Tensor.group_norm", "DTypeError"): "channels.group_norm(2, weight=1.0)",
    ("Tensor.scaled_dot_product_attention", "ShapeError"): "matrix.scaled_dot_product_attention(matrix, numbers)",
    ("Tensor.scaled_dot_product_attention", "DTypeError"): "matrix.scaled_dot_product_attention(square, square)",
    ("Tensor.max_pool2d", "ShapeError"): "numbers.max_pool2d()",
    ("Tensor.avg_pool2d", "ShapeError"): "image.avg_pool2d(2, padding=2)",
    ("Tensor.conv2d", "ShapeError"): "image.conv2d(matrix)",
    ("Tensor.conv2d", "DTypeError"): "image.bool().conv2d(kernel.bool())",
    ("Tensor.conv1d", "ShapeError"): "image.conv1d(kernel)",
    ("Tensor.conv1d", "DTypeError"): "image[0].bool().conv1d(kernel[0].bool())",
    ("Tensor.conv_transpose2d", "ShapeError"): "image.conv_transpose2d(matrix)",
    ("Tensor.conv_transpose2d", "DTypeError"): "image.bool().conv_transpose2d(kernel.bool())",
    # Orders, positions, parts.
    ("Tensor.cumulative_sum", "ShapeError"): "matrix.cumulative_sum()",
    ("Tensor.cumulative_prod", "ShapeError"): "matrix.cumulative_prod()",
    ("Tensor.searchsorted", "ShapeError"): "matrix.searchsorted(1)",
    ("Tensor.scatter", "ShapeError"): "matrix.scatter(0, [0], [1])",
    ("Tensor.scatter_add", "ShapeError"): "matrix.scatter_add(0, [0], [1])",
    ("Tensor.topk", "ShapeError"): "numbers.topk(4)",
    ("Tensor.topk", "AxisError"): "numbers.topk(1, 7)",
    ("Tensor.take", "PositionError"): "numbers.take([3])",
    ("Tensor.take_along_axis", "ShapeError"): "matrix.take_along_axis([0])",
    ("Tensor.take_along_axis", "PositionError"): "numbers.take_along_axis([3])",
    ("Tensor.one_hot", "DTypeError"): "floats.one_hot(3)",
    ("Tensor.one_hot", "ShapeError"): "numbers.one_hot(-1)",
    ("Tensor.nonzero", "ShapeError"): "Tensor(1).nonzero()",
    ("Tensor.cat", "ShapeError"): "matrix.cat(numbers)",
    ("Tensor.concat", "ShapeError"): "Tensor.concat([])",
    ("Tensor.concat", "DeviceError"): "Tensor.concat([numbers, elsewhere])",
    ("Tensor.stack", "ShapeError"): "Tensor.stack([numbers, two])",
    ("Tensor.split", "ShapeError"): "numbers.split([1, 1])",
    ("Tensor.split", "AxisError"): "numbers.split(1, 7)",
    ("Tensor.chunk", "ShapeError"): "numbers.chunk(0)",
    ("Tensor.chunk", "AxisError"): "numbers.chunk(1, 7)",
    ("Tensor.tile", "ShapeError"): "numbers.tile(-1)",
    ("Tensor.repeat", "ShapeError"): "numbers.repeat(-1)",
    ("Tensor.repeat", "AxisError"): "numbers.repeat(1, 7)",
    ("Tensor.roll", "AxisError"): "numbers.roll(1, 7)",
    ("Tensor.diff", "ShapeError"): "numbers.diff(n=-1)",
    ("Tensor.meshgrid", "ShapeError"): "Tensor.meshgrid(matrix)",
    ("Tensor.meshgrid", "DTypeError"): "Tensor.meshgrid([1])",
    # Tensors as a whole.
    ("Tensor", "ShapeError"): "Tensor([[1], [1, 2]])",
    ("Tensor", "DTypeError"): "Tensor([1], dtype='nonsense')",
    ("Tensor", "DeviceError"): "Tensor([1], device='NOWHERE')",
    ("Tensor.from_numpy", "DTypeError"): "Tensor.from_numpy(np.array(['text']))",
    ("Tensor.from_dlpack", "DTypeError"): "Tensor.from_dlpack([1])",
    ("Tensor.realize", "DTypeError"): "numbers.realize(1)",
    ("Tensor.realize", "ArgumentTypeError"): "numbers.realize(config=1)",
    ("Tensor.realize_with", "ArgumentTypeError"): "numbers.realize_with(1)",
    ("Tensor.all_reduce", "ShapeError"): "Tensor.all_reduce([two, elsewhere])",
    ("Tensor.all_reduce", "DTypeError"): "Tensor.all_reduce([floats, elsewhere])",
    ("Tensor.all_reduce", "DeviceError"): "Tensor.all_reduce([numbers, numbers])",
    ("Tensor.realize_batch", "DTypeError"): "Tensor.realize_batch(numbers)",
    ("Tensor.prepare", "ArgumentTypeError"): "numbers.prepare(1)",
    ("Tensor.prepare_batch", "DTypeError"): "Tensor.prepare_batch([])",
    ("Tensor.prepare_batch", "DeviceError"): "Tensor.prepare_batch([numbers + 1, elsewhere + 1])",
    ("Tensor.kernels", "DeviceError"): "numbers.kernels(device='NOWHERE')",
    ("Tensor.buffer", "JitValueError"): "morok.jit(lambda x: x + (x.buffer is None))(numbers)",
    ("Tensor.to", "DeviceError"): "numbers.to('NOWHERE')",
    ("Tensor.to", "DTypeError"): "numbers.to('CPU', 'nonsense')",
    ("Tensor.assign", "ShapeError"): "numbers.assign(two)",
    ("Tensor.assign", "DTypeError"): "numbers.assign(floats)",
    ("Tensor.assign", "UsageError"): "numbers[1:].assign([5, 6])",
    ("Tensor.numpy", "ShapeError"): "numbers[: Variable('n', 1, 3).node].numpy()",
    ("Tensor.numpy", "OutOfMemoryError"): "Tensor.zeros(1 << 50).numpy()",
    ("Tensor.item", "ShapeError"): "numbers.item()",
    ("Tensor.from_slice", "ShapeError"): "Tensor.from_slice([1, 2, 3], (2, 2))",
    ("Tensor.to_ndarray", "DTypeError"): "numbers.to_ndarray('nonsense')",
    ("Variable", "BindError"): "Variable('n', 2, 1)",
    ("Variable.bind", "BindError"): "Variable('n', 1, 2).bind(3)",
    # Layers.
    ("Module.forward", "UsageError"): "nn.Module().forward(numbers)",
    ("Module.train", "ArgumentTypeError"): "nn.Module().train('yes')",
    ("Module.load_state_dict", "StateError"): "nn.Linear(1, 1).load_state_dict({})",
    ("Sequential", "ArgumentTypeError"): "nn.Sequential(1)",
    ("Linear.forward", "ShapeError"): "nn.Linear(2, 1).forward(floats)",
    ("Embedding.forward", "DTypeError"): "nn.Embedding(2, 1).forward(floats)",
    ("Conv2d.forward", "ShapeError"): "nn.Conv2d(3, 1, 1).forward(image)",
    ("ConvTranspose2d.forward", "ShapeError"): "nn.ConvTranspose2d(3, 1, 1).forward(image)",
    ("LayerNorm.forward", "ShapeError"): "nn.LayerNorm(2).forward(floats)",
    ("RMSNorm.forward", "ShapeError"): "nn.RMSNorm(2).forward(floats)",
    ("GroupNorm", "ShapeError"): "nn.GroupNorm(3, 4)",
    ("GroupNorm.forward", "ShapeError"): "nn.GroupNorm(2, 4).forward(floats)",
    ("BatchNorm", "ShapeError"): "nn.BatchNorm(0)",
    ("BatchNorm.forward", "ShapeError"): "nn.BatchNorm(3).train().forward(Tensor.ones(1, 3))",
    # Nodes.
    ("UOp.new", "IRTypeError"): "UOp.new(Op.Add, (node,))",
    ("UOp.const", "IRTypeError"): "UOp.const('one')",
    ("UOp.var", "IRTypeError"): "UOp.var('x', 'i32')",
    ("UOp.range", "IRTypeError"): "UOp.range('many', 0)",
    ("UOp.vectorize", "IRTypeError"): "UOp.vectorize(node, real)",
    ("UOp.gep", "IRTypeError"): "node.gep(3)",
    ("UOp.cast", "IRTypeError"): "node.cast(dtypes.void)",
    ("UOp.bitcast", "IRTypeError"): "node.bitcast(dtypes.i8)",
    ("UOp.like", "IRTypeError"): "node.like('one')",
    ("UOp.replace", "IRTypeError"): "(node + 1).replace((node, real))",
    ("UOp.substitute", "IRTypeError"): "node.substitute({node: 1})",
    ("UOp.where", "IRTypeError"): "node.where(node, node)",
    ("UOp.field", "FieldError"): "node.field('axis')",
    ("parse", "ParseError"): "morok.parse('Add(')",
    # Rules, settings, plans.
    ("load_rules", "RuleError"): "morok.load_rules('nowhere.rules')",
    ("load_rules", "UnprovedRuleError"): "morok.load_rules(pack('group g \"g\"\\n\\nr: Add(x: i8, 1) ~> x\\n'))",
    ("load_rules", "UntrustedHelperError"): "morok.load_rules(calls())",
    ("rewrite", "UsageError"): "morok.rewrite(node, [])",
    ("rewrite", "UnprovedRuleError"): "morok.rewrite(UOp.var('x', dtypes.i8) + 1, unproved())",
    ("rewrite", "RewriteLimitError"): "morok.rewrite(node + node, morok.load_rules(pack(CYCLE)))",
    ("append_rules", "UsageError"): "morok.append_rules(21, morok.rewrite.library.group('movement')).__enter__()",
    ("append_rules", "UnprovedRuleError"): "morok.append_rules(8, unproved()).__enter__()",
    ("prove", "RuleError"): "morok.prove(pack('group g \"g\"\\n\\nr: Nonsense(x) ~> x\\n'))",
    ("settings", "ConfigError"): "morok.settings(nonsense=1).__enter__()",
    ("helper", "UsageError"): "morok.helper(1)",
    ("OptimizerConfig", "ConfigError"): "OptimizerConfig('fast')",
    ("Beam", "ConfigError"): "Beam(0)",
    ("Explicit", "ConfigError"): "Explicit('UPCAST(0, 4)')",
    ("Explicit", "OptError"): "(numbers + 1).realize(config=OptimizerConfig([Opt(OptOp.UPCAST, 7, 4)]))",
    ("Opt", "ConfigError"): "Opt('UPCAST')",
    ("jit", "UsageError"): "def f(x):\n    yield x\nmorok.jit(f)",
    ("jit", "JitArgumentError"): "morok.jit(lambda x: numbers + 1)(bytearray(b'x'))",
    ("jit", "JitValueError"): "morok.jit(lambda x: x + x.item())(Tensor(1))",
    ("jit", "JitDifferenceError"): "import itertools\nk = itertools.count()\nmorok.jit(lambda x: x + next(k))(numbers)",
    ("jit", "JitEffectError"): "kept = []\nmorok.jit(lambda x: kept.append(x + 1))(numbers)",
}
