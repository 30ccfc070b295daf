"""Functions on 64-bit words in LLVM IR, written in Python: operators emit instructions, `with` opens branches and loops.

Every value is a word, addresses included: `word[i]` is the word in memory `i` words after the address `word`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from morok.codegen.llvm.builder import Builder
from morok.codegen.llvm.lane_arithmetic import Lanes


def _name(value: Word | int) -> str:
    return value.name if isinstance(value, Word) else str(value)


def _comparison(condition: str) -> Callable[[Word, Word | int], Word]:
    return lambda x, y: _number(x.compare(condition, y))


def _number(bit: Lanes) -> Word:
    return Word(bit.b, bit.convert("zext", "i64").name)


class Word(Lanes):
    """A value of the function under construction. Comparisons, of signed words, give 0 or 1."""

    __slots__ = ()

    __lt__ = _comparison("slt")
    __gt__ = _comparison("sgt")
    equals = _comparison("eq")

    def _at(self, index: Word | int) -> str:
        base = self.b.emit(f"inttoptr i64 {self.name} to ptr")
        return self.b.emit(f"getelementptr i64, ptr {base}, i64 {_name(index)}")

    def __getitem__(self, index: Word | int) -> Word:
        return Word(self.b, self.b.emit(f"load i64, ptr {self._at(index)}, align 8"))

    def __setitem__(self, index: Word | int, value: Word | int) -> None:
        self.b.do(f"store i64 {_name(value)}, ptr {self._at(index)}, align 8")

    # Atomic accesses, sequentially consistent.

    def load(self, index: int) -> Word:
        """The current word at `index`."""
        return Word(self.b, self.b.emit(f"load atomic i64, ptr {self._at(index)} seq_cst, align 8"))

    def update(self, index: int, op: str, by: Word | int) -> Word:
        """The old word at `index`, after an update by `op`: add, sub, and, or xchg (replace)."""
        return Word(self.b, self.b.emit(f"atomicrmw {op} ptr {self._at(index)}, i64 {_name(by)} seq_cst"))

    def exchange(self, index: int, old: Word | int, new: Word | int) -> Word:
        """1 if the word at `index` was `old`, and is now `new`; else 0."""
        pair = self.b.emit(f"cmpxchg ptr {self._at(index)}, i64 {_name(old)}, i64 {_name(new)} seq_cst seq_cst")
        return _number(Lanes(self.b, self.b.emit(f"extractvalue {{ i64, i1 }} {pair}, 1"), "i1"))


class Function:
    """A function `name` of `parameters` words, without a result; its methods append instructions."""

    def __init__(self, name: str, parameters: int) -> None:
        self.name = name
        self.b = Builder()
        self.parameters = [Word(self.b, f"%p{i}") for i in range(parameters)]
        self._exits: list[str] = []  # the exit labels of open loops

    def memory(self, words: Word | int) -> Word:
        """The address of `words` new words on the stack, in each execution."""
        address = self.b.emit(f"alloca i64, i64 {_name(words)}, align 8")
        return Word(self.b, self.b.emit(f"ptrtoint ptr {address} to i64"))

    def variable(self) -> Word:
        """The address of a new word on the stack, initially 0."""
        memory, address = self.b.name(), self.b.name()
        self.b.entry += [f"  {memory} = alloca i64, align 8", f"  {address} = ptrtoint ptr {memory} to i64"]
        variable = Word(self.b, address)
        variable[0] = 0
        return variable

    def _enter(self, label: str) -> None:
        self.b.do(f"br label %{label}")
        self.b.start(label)

    def _branch(self, condition: Word, then: str, otherwise: str) -> None:
        self.b.do(f"br i1 {self.b.compare('ne', 'i64', 1, condition.name, '0')}, label %{then}, label %{otherwise}")

    @contextmanager
    def when(self, condition: Word) -> Iterator[None]:
        """A `with` block of instructions that run if `condition` is not 0."""
        then, after = self.b.label("then"), self.b.label("after")
        self._branch(condition, then, after)
        self.b.start(then)
        yield
        self._enter(after)

    @contextmanager
    def loop(self) -> Iterator[None]:
        """A `with` block of instructions that repeat until `leave_unless` leaves."""
        header, after = self.b.label("loop"), self.b.label("after")
        self._exits.append(after)
        self._enter(header)
        yield
        self.b.do(f"br label %{header}")
        self.b.start(self._exits.pop())

    def leave_unless(self, condition: Word) -> None:
        """Leave the innermost loop if `condition` is 0."""
        stay = self.b.label("stay")
        self._branch(condition, stay, self._exits[-1])
        self.b.start(stay)

    def call(self, function: str | Word, *operands: Word | int) -> None:
        """Call a function by name or address; a result is ignored."""
        if isinstance(function, Word):
            callee = self.b.emit(f"inttoptr i64 {function.name} to ptr")
        else:
            callee = f"@{function}"
            self.b.declared[callee] = f"declare void {callee}({', '.join(['i64'] * len(operands))})"
        self.b.do(f"call void {callee}({', '.join(f'i64 {_name(x)}' for x in operands)})")


def module(functions: Sequence[Function]) -> str:
    """The LLVM module of these functions, with declarations of the other functions that they call."""
    declared = {name: line for f in functions for name, line in f.b.declared.items()}
    lines = [line for name, line in declared.items() if name not in {f"@{f.name}" for f in functions}]
    for f in functions:
        head = f"define void @{f.name}({', '.join(f'i64 {p.name}' for p in f.parameters)}) {{"
        lines += [head, "entry:", *f.b.entry, *f.b.lines, "  ret void", "}"]
    return "\n".join([*lines, ""])
