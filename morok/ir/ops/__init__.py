"""The op table, filled: importing this package defines every op."""

from morok.ir.op import TABLE as TABLE
from morok.ir.ops import alu as alu
from morok.ir.ops import loop as loop
from morok.ir.ops import memory as memory
from morok.ir.ops import tensor as tensor
from morok.ir.ops import vector as vector
