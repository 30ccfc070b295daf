"""The op table, filled: importing this package defines every op."""

from morok.ir.op import TABLE as TABLE
from morok.ir.ops import alu as alu
from morok.ir.ops import loop as loop
from morok.ir.ops import memory_ops as memory_ops
from morok.ir.ops import tensor_ops as tensor_ops
from morok.ir.ops import vector as vector
