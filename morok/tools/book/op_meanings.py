"""The meaning of each op, in a sentence, for docs/ops.md; operands and fields come from the op table."""

from __future__ import annotations

from typing import Final

from morok.ir.op import Op

_TEXT: Final = {
    "Constants and variables": """
        Const a number, the same in every lane
        VConst a vector of numbers that differ
        Invalid no index at all: a read there gives 0, a write does nothing
        DefineVar a number known when the program runs, within bounds
        Bind a variable and the value it has in this run
        Special a GPU's thread or block number
        Iota 0, 1, 2, .. below its end, as a tensor
    """,
    "Arithmetic": """
        Neg -x; integers wrap
        Add x + y; integers wrap
        Sub x - y; integers wrap
        Mul x * y; integers wrap
        MulAcc a * b + c, rounded once at floats
        Idiv the quotient rounded toward zero; undefined for 0, and for the least number by -1
        Mod what Idiv leaves: x - y * Idiv(x, y)
        FloorDiv the quotient rounded down: NumPy's `//`
        FloorMod what FloorDiv leaves: NumPy's `%`
        Fdiv the quotient of floats
        Max the greater; NaN if either is
        Min the lesser; NaN if either is
        Abs the distance from 0
        Sign -1, 0 or 1
        Square x * x
        Pow x to the power of y
    """,
    "Roots, powers of e and of 2, angles": """
        Sqrt the square root
        Rsqrt 1 / sqrt(x)
        Reciprocal 1 / x
        Exp e to the power of x
        Exp2 2 to the power of x
        Log the natural logarithm
        Log2 the logarithm to base 2
        Sin the sine
        Cos the cosine
        Tan the tangent
        Tanh the hyperbolic tangent
        Erf the error function
    """,
    "Rounding": """
        Trunc toward zero
        Floor down
        Ceil up
        Round to the nearest, halves to even
    """,
    "Bits": """
        Not every bit, or the truth, turned over
        And bit by bit; of bools: both
        Or bit by bit; of bools: either
        Xor bit by bit; of bools: one of the two
        Shl bits moved up; undefined for a count not less than the width
        Shr bits moved down: the sign moves in at signed dtypes; undefined for a count not less than the width
        Threefry counter and key to random bits
    """,
    "Comparisons and choice": """
        Lt x < y
        Le x <= y
        Gt x > y
        Ge x >= y
        Eq x == y; never of NaN
        Ne x != y; always of NaN
        Where t where the condition holds, else f; the other branch need not have a value
    """,
    "Types": """
        Cast the number in another dtype: integers wrap, floats round or truncate; a float or index that does not fit is undefined
        Bitcast the same bits in another dtype
        Precast a mark that a cast may not be folded past; scheduling drops it, and in a kernel by hand it takes no vectors
    """,
    "Loops and reductions": """
        Range a loop, and its counter: 0 up to its end
        End what is done in the loops that it closes
        Reduce the sum, product, maximum or minimum over loops
        ReduceAxis the same over axes of a tensor
        AllReduce the same over devices
        If the instructions up to its EndIf run where the condition holds
        EndIf closes an If
    """,
    "Memory": """
        Unique a name that makes two equal buffers two
        Device a device by name
        Buffer memory of so many elements
        BufferView a part of a buffer
        Bufferize a value over ranges that is to be stored
        Param an argument of a program
        DefineGlobal a kernel's argument: a buffer by slot, outputs first
        DefineLocal memory that a workgroup shares
        DefineReg an accumulator
        Index the place of an element; with a gate, none where it is false
        PointerIndex a pointer moved on by an offset
        PtrCat places next to each other, as one; for rules of users, no stage makes it
        Load what is at a place; `alt` where its gate is false
        Store writes a value to a place, in the loops that it closes
        Copy a tensor on another device
        Assign a value written over a tensor's memory
    """,
    "Order, kernels and programs": """
        After its first operand, once the others are done
        Barrier waits for all threads of a workgroup
        Kernel a program of its own, and the buffers it uses
        Sink what a program is for
        Group statements without an order; in a list of instructions those that stand there, in order
        Noop nothing
        Custom a statement in the target's own language
        CustomI an expression in the target's own language
    """,
    "Vectors": """
        Vectorize scalars as the lanes of a vector
        Gep chosen lanes of a vector
        Cat vectors joined
        Unroll a vector whose lanes are the iterations of unrolled axes
        Contract the iterations of unrolled axes as lanes
        Wmma a tensor core's product of small matrices, plus a third
    """,
    "Tensors": """
        Reshape the elements in row-major order in another shape
        Permute axes in another order
        Expand an axis of size 1 repeated
        Pad zeros around
        Shrink a part, cut out
        Flip axes backwards
        Concat tensors behind each other along an axis
        Contiguous with memory of its own
        ContiguousBackward a mark that means nothing to a schedule
        Detach a mark that means nothing to a schedule
        Multi one tensor in parts on several devices
        MSelect the part on one device
        MStack parts as one tensor on several devices
    """,
}


def _lines(text: str) -> list[tuple[Op, str]]:
    pairs = [line.strip().split(" ", 1) for line in text.strip().splitlines()]
    return [(Op[name], meaning) for name, meaning in pairs]


KINDS: Final = {kind: tuple(op for op, _ in _lines(text)) for kind, text in _TEXT.items()}
MEANINGS: Final = {op: meaning for text in _TEXT.values() for op, meaning in _lines(text)}
