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


def _words(text: str) -> list[str]:
    return text.split()


_BINARY = _words("""
    Math.__sub__ Math.__mul__ Math.__truediv__ Math.__mod__ Math.__lshift__ Math.__rshift__ Math.__and__ Math.__or__ Math.__xor__
    Math.__lt__ Math.__le__ Math.__gt__ Math.__ge__ Math.__eq__ Math.__ne__ Math.add Math.sub Math.mul Math.div
    Math.floor_divide Math.mod Math.pow Math.eq Math.ne Math.maximum Math.minimum Math.logical_and Math.logical_or
    Math.logical_xor Functions.copysign Functions.logaddexp Hyperbolic.atan2 Hyperbolic.hypot
""")
_INTEGERS_ONLY = _words("Math.__lshift__ Math.__rshift__ Math.__and__ Math.__or__ Math.__xor__")
_ALONG_AN_AXIS = _words("""
    Reduce.sum Reduce.prod Reduce.max Reduce.min Reduce.any Reduce.all Reduce.count_nonzero Reduce.mean Reduce.var Reduce.std
    Reduce.argmax Reduce.argmin Reduce.softmax Reduce.log_softmax Reduce.logsumexp Scan.cumsum Scan.cumprod Scan.cummax
    Scan.cummin Sorting.argsort Sorting.sort Joining.unstack Joining.diff Norm.layernorm Norm.rms_norm Norm.batchnorm
    Einsum.vector_norm Movement.expand_dims Movement.unsqueeze Movement.flip
""")
_MADE = ["Creators.zeros", "Creators.ones", "Creators.empty", "Random.rand", "Random.randn"]
_LAYERS = ("Linear(0, 1)", "Embedding(0, 1)", "Conv2d(0, 1, 1)", "ConvTranspose2d(0, 1, 1)", "LayerNorm(0)", "RMSNorm(0)")


def _method(name: str) -> str:
    return name.partition(".")[2]


RAISING: Final[dict[tuple[str, str], str]] = {
    **{(name, "ShapeError"): f"numbers.{_method(name)}(two)" for name in _BINARY},
    **{(name, "DeviceError"): f"numbers.{_method(name)}(elsewhere)" for name in _BINARY},
    **{(name, "DTypeError"): f"floats.{_method(name)}(1)" for name in _INTEGERS_ONLY},
    **{(name, "AxisError"): f"floats.{_method(name)}(axis=7)" for name in _ALONG_AN_AXIS},
    **{(name, "ShapeError"): f"Tensor.{_method(name)}(-1)" for name in _MADE},
    **{(name, "DTypeError"): f"Tensor.{_method(name)}(2, dtype='i32')" for name in ("Random.rand", "Random.randn")},
    **{(name, "DTypeError"): f"Tensor.{_method(name)}(2, dtype='nonsense')" for name in _MADE[:3]},
    **{(layer.partition("(")[0], "ShapeError"): f"nn.{layer}" for layer in _LAYERS},
    # Elementwise.
    ("Math.__sub__", "DTypeError"): "bools - bools",
    ("Math.sub", "DTypeError"): "bools.sub(bools)",
    ("Math.__neg__", "DTypeError"): "-bools",
    ("Math.neg", "DTypeError"): "bools.neg()",
    ("Math.__invert__", "DTypeError"): "~floats",
    ("Math.cast", "DTypeError"): "numbers.cast('nonsense')",
    ("Math.astype", "DTypeError"): "numbers.astype('nonsense')",
    ("Math.bitcast", "DTypeError"): "numbers.bitcast('i8')",
    ("Math.clip", "ShapeError"): "numbers.clip(two)",
    ("Math.clamp", "ShapeError"): "numbers.clamp(two)",
    ("Math.where", "DTypeError"): "numbers.where(1, 2)",
    ("Math.where", "ShapeError"): "bools.where(two, 0)",
    ("Math.masked_fill", "DTypeError"): "numbers.masked_fill(numbers, 0)",
    ("Math.masked_fill", "ShapeError"): "numbers.masked_fill([True, False], 0)",
    ("Math.pad", "ShapeError"): "numbers.pad([(1, -1)])",
    ("Math.pad", "ArgumentTypeError"): "numbers.pad(1)",
    ("Functions.sign", "DTypeError"): "bools.sign()",
    # Made of numbers.
    ("Creators.full", "ShapeError"): "Tensor.full((-1,), 0)",
    ("Creators.full", "DTypeError"): "Tensor.full((2,), 0, 'nonsense')",
    ("Creators.arange", "ShapeError"): "Tensor.arange(1, 2, 0)",
    ("Creators.linspace", "ShapeError"): "Tensor.linspace(0, 1, -1)",
    ("Creators.eye", "ShapeError"): "Tensor.eye(-1)",
    ("Creators.contiguous", "ConfigError"): "numbers.contiguous('UPCAST')",
    ("Creators.contiguous", "OptError"): "(numbers + 1).contiguous(Opt(OptOp.UPCAST, 7, 4)).realize()",
    ("Random.manual_seed", "ShapeError"): "Tensor.manual_seed('seed')",
    ("Random.uniform", "ShapeError"): "Tensor.uniform(2, low=1, high=0)",
    ("Random.uniform", "DTypeError"): "Tensor.uniform(2, dtype='i32')",
    ("Random.randint", "ShapeError"): "Tensor.randint(2, low=1, high=1)",
    ("Random.randint", "DTypeError"): "Tensor.randint(2, dtype='f32')",
    ("Random.normal", "ShapeError"): "Tensor.normal(2, std=-1.0)",
    ("Random.normal", "DTypeError"): "Tensor.normal(2, dtype='i32')",
    ("Random.randperm", "ShapeError"): "Tensor.randperm(-1)",
    ("Random.dropout", "ShapeError"): "floats.dropout(2.0)",
    # Views.
    ("Movement.reshape", "ShapeError"): "numbers.reshape(2, 2)",
    ("Movement.flatten", "AxisError"): "numbers.flatten(7)",
    ("Movement.expand", "ShapeError"): "numbers.expand(2)",
    ("Movement.broadcast_to", "ShapeError"): "numbers.broadcast_to((2,))",
    ("Movement.permute", "ShapeError"): "matrix.permute(0, 0)",
    ("Movement.permute_dims", "ShapeError"): "matrix.permute_dims((0, 0))",
    ("Movement.transpose", "AxisError"): "matrix.transpose(7, 0)",
    ("Movement.mT", "AxisError"): "numbers.mT",
    ("Movement.matrix_transpose", "AxisError"): "numbers.matrix_transpose()",
    ("Movement.moveaxis", "AxisError"): "matrix.moveaxis(7, 0)",
    ("Movement.flip", "ShapeError"): "matrix.flip(0, 0)",
    ("Movement.shrink", "ShapeError"): "numbers.shrink([(0, 4)])",
    ("Movement.shrink", "ArgumentTypeError"): "numbers.shrink(1)",
    ("Movement.squeeze", "ShapeError"): "numbers.squeeze(0)",
    ("Movement.repeat_interleave", "AxisError"): "numbers.repeat_interleave(2, 7)",
    # Reductions and products.
    ("Reduce.sum", "ShapeError"): "matrix.sum((0, 0))",
    ("Reduce.sum", "DTypeError"): "matrix.sum(dtype=bool)",
    ("Reduce.prod", "ShapeError"): "matrix.prod((0, 0))",
    ("Reduce.prod", "DTypeError"): "matrix.prod(dtype=bool)",
    **{(f"Reduce.{name}", "ShapeError"): f"nothing.{name}()" for name in ("max", "min", "argmax", "argmin")},
    ("Reduce.var", "ShapeError"): "floats.var(correction=float('nan'))",
    ("Reduce.std", "ShapeError"): "floats.std(correction=float('nan'))",
    ("Linalg.matmul", "ShapeError"): "numbers @ two",
    ("Linalg.matmul", "DeviceError"): "numbers @ elsewhere",
    ("Linalg.dot", "ShapeError"): "numbers.dot(two)",
    ("Linalg.linear", "ShapeError"): "numbers.linear(matrix)",
    ("Linalg.linear", "DTypeError"): "numbers.linear([[1, 2, 3]])",
    ("Linalg.outer", "DeviceError"): "numbers.outer(elsewhere)",
    ("Linalg.tril", "AxisError"): "numbers.tril()",
    ("Linalg.triu", "AxisError"): "numbers.triu()",
    ("Einsum.einsum", "ShapeError"): "Tensor.einsum('ij->i', numbers)",
    ("Einsum.einsum", "DTypeError"): "Tensor.einsum('i->i', [1])",
    ("Einsum.diagonal", "ShapeError"): "matrix.diagonal(axis1=0, axis2=0)",
    ("Einsum.trace", "AxisError"): "numbers.trace()",
    ("Einsum.vecdot", "ShapeError"): "numbers.vecdot(two)",
    ("Einsum.tensordot", "ShapeError"): "numbers.tensordot(two, 1)",
    ("Einsum.vector_norm", "ShapeError"): "nothing.vector_norm(ord=-float('inf'))",
    ("Activation.gelu", "DTypeError"): "floats.gelu('about')",
    # Losses, layers of one call.
    **{(f"Loss.{name}", "ShapeError"): f"floats.{name}(two)" for name in ("mse_loss", "l1_loss")},
    **{(f"Loss.{name}", "DTypeError"): f"floats.{name}(floats, 'most')" for name in ("mse_loss", "l1_loss")},
    **{
        (f"Loss.binary_cross_entropy{more}", error): f"floats.binary_cross_entropy{more}({arguments})"
        for more in ("", "_with_logits")
        for error, arguments in (("ShapeError", "two"), ("DTypeError", "floats, 'most'"))
    },
    ("Loss.nll_loss", "ShapeError"): "matrix.nll_loss(numbers)",
    ("Loss.nll_loss", "DTypeError"): "matrix.nll_loss([0.5, 1.0])",
    ("Loss.cross_entropy", "ShapeError"): "matrix.cross_entropy(numbers)",
    ("Loss.cross_entropy", "DTypeError"): "matrix.cross_entropy([0, 1], reduction='most')",
    ("Norm.batchnorm", "ShapeError"): "matrix.batchnorm(numbers)",
    ("Norm.group_norm", "ShapeError"): "channels.group_norm(3)",
    ("Norm.group_norm", "DTypeError"): "channels.group_norm(2, weight=1.0)",
    ("Norm.scaled_dot_product_attention", "ShapeError"): "matrix.scaled_dot_product_attention(matrix, numbers)",
    ("Norm.scaled_dot_product_attention", "DTypeError"): "matrix.scaled_dot_product_attention(square, square)",
    ("Pool.max_pool2d", "ShapeError"): "numbers.max_pool2d()",
    ("Pool.avg_pool2d", "ShapeError"): "image.avg_pool2d(2, padding=2)",
    ("Conv.conv2d", "ShapeError"): "image.conv2d(matrix)",
    ("Conv.conv2d", "DTypeError"): "image.bool().conv2d(kernel.bool())",
    ("Conv.conv1d", "ShapeError"): "image.conv1d(kernel)",
    ("Conv.conv1d", "DTypeError"): "image[0].bool().conv1d(kernel[0].bool())",
    ("Conv.conv_transpose2d", "ShapeError"): "image.conv_transpose2d(matrix)",
    ("Conv.conv_transpose2d", "DTypeError"): "image.bool().conv_transpose2d(kernel.bool())",
    # Orders, positions, parts.
    ("Scan.cumulative_sum", "ShapeError"): "matrix.cumulative_sum()",
    ("Scan.cumulative_prod", "ShapeError"): "matrix.cumulative_prod()",
    ("Searching.searchsorted", "ShapeError"): "matrix.searchsorted(1)",
    ("Searching.scatter", "ShapeError"): "matrix.scatter(0, [0], [1])",
    ("Searching.scatter_add", "ShapeError"): "matrix.scatter_add(0, [0], [1])",
    ("Sorting.topk", "ShapeError"): "numbers.topk(4)",
    ("Sorting.topk", "AxisError"): "numbers.topk(1, 7)",
    ("Indexing.take", "PositionError"): "numbers.take([3])",
    ("Indexing.take_along_axis", "ShapeError"): "matrix.take_along_axis([0])",
    ("Indexing.take_along_axis", "PositionError"): "numbers.take_along_axis([3])",
    ("Indexing.one_hot", "DTypeError"): "floats.one_hot(3)",
    ("Indexing.one_hot", "ShapeError"): "numbers.one_hot(-1)",
    ("Indexing.nonzero", "ShapeError"): "Tensor(1).nonzero()",
    ("Joining.cat", "ShapeError"): "matrix.cat(numbers)",
    ("Joining.concat", "ShapeError"): "Tensor.concat([])",
    ("Joining.concat", "DeviceError"): "Tensor.concat([numbers, elsewhere])",
    ("Joining.stack", "ShapeError"): "Tensor.stack([numbers, two])",
    ("Joining.split", "ShapeError"): "numbers.split([1, 1])",
    ("Joining.split", "AxisError"): "numbers.split(1, 7)",
    ("Joining.chunk", "ShapeError"): "numbers.chunk(0)",
    ("Joining.chunk", "AxisError"): "numbers.chunk(1, 7)",
    ("Joining.tile", "ShapeError"): "numbers.tile(-1)",
    ("Joining.repeat", "ShapeError"): "numbers.repeat(-1)",
    ("Joining.repeat", "AxisError"): "numbers.repeat(1, 7)",
    ("Joining.roll", "AxisError"): "numbers.roll(1, 7)",
    ("Joining.diff", "ShapeError"): "numbers.diff(n=-1)",
    ("Joining.meshgrid", "ShapeError"): "Tensor.meshgrid(matrix)",
    ("Joining.meshgrid", "DTypeError"): "Tensor.meshgrid([1])",
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
    ("load", "ParseError"): "morok.parse('Add(')",
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
