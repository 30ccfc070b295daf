"""Buffers written more than once: who reads which contents."""

from __future__ import annotations

import numpy as np
import pytest
from interpreted import run

import morok
from morok import Tensor
from morok.runtime.memory import parallel_groups
from morok.tensor.schedule import create_schedule


def data(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def test_an_assignment_computed_on_the_way_is_not_done_again() -> None:
    a, b = data(4), data(4, seed=1)
    total = a.numpy() + b.numpy()
    a.assign(a + b)
    b.assign(a)
    np.testing.assert_array_equal(b.numpy(), total)
    np.testing.assert_array_equal(a.numpy(), total)  # the addition ran once


def test_assigning_twice_adds_twice() -> None:
    a = data(4)
    was = a.numpy().copy()
    a.assign(a + 1)
    a.assign(a + 1)
    np.testing.assert_allclose(a.numpy(), was + 2, rtol=1e-6)


def test_assignments_one_after_the_other_need_no_temporary() -> None:
    """What each kernel reads of the buffer is the element that it writes; elsewhere it is read from a copy."""
    a = data(6)
    was = a.numpy().copy()
    for _ in range(4):
        a.assign(a * 2)
    assert [len(i.buffers) for i in a.schedule()] == [1] * 4
    a.assign(a.flip(0) + 1)
    a.assign(a.reshape(2, 3).T.reshape(6))
    np.testing.assert_allclose(a.numpy(), ((was * 16)[::-1] + 1).reshape(2, 3).T.reshape(6), rtol=1e-6)


def test_a_reader_that_comes_later_in_the_graph_runs_before_the_writer() -> None:
    a, c = data(4), data(4, seed=1)
    was = a.numpy().copy()
    other = Tensor(a)
    a.assign(c)
    late = other.flip(0) + 1
    del other  # which had to be copied
    items = a.schedule()  # the pending reader is part of it
    assert len(items) == 2
    np.testing.assert_array_equal(run(a, late)[1], was[::-1] + 1)


def test_all_three_orders_are_said_by_dependencies() -> None:
    """Reading after writing, writing after reading, writing after writing."""
    a, c = data(4), data(4, seed=1)
    first, source, memory = a.numpy().copy(), c.numpy(), a.buffer
    old = (a * 2).contiguous()
    a.assign(c + 1)
    middle = (a.flip(0) * 3).contiguous()
    a.assign(c + 2)
    new = (a.flip(0) * 5).contiguous()
    items = create_schedule([new, middle, old, a])
    one, two = [k for k, i in enumerate(items) if i.buffers[0] is memory]
    closure = [set(i.dependencies) for i in items]
    for k in range(len(items)):
        for d in list(closure[k]):
            closure[k] |= closure[d]
    assert one in closure[two]
    readers = [k for k, i in enumerate(items) if memory in i.buffers[1:]]
    assert len(readers) == 3
    before, between, after = readers
    assert before in closure[one]
    assert one in closure[between]
    assert between in closure[two]
    assert two in closure[after]
    assert [len(g) for g in parallel_groups([i.dependencies for i in items])] == [1] * len(items)
    x, y, z = run(new, middle, old)
    np.testing.assert_allclose(x, (source + 2)[::-1] * 5)
    np.testing.assert_allclose(y, (source + 1)[::-1] * 3)
    np.testing.assert_allclose(z, first * 2)


def test_a_kernel_that_reads_what_was_and_what_is_assigned_reads_a_copy() -> None:
    a = data(4)
    was, memory = a.numpy().copy(), a.buffer
    total = (a * 2) + a.assign(a + 1)
    np.testing.assert_array_equal(total.numpy(), was * 2 + (was + 1))
    np.testing.assert_array_equal(a.numpy(), was + 1)
    assert a.buffer is memory


def test_a_kernel_that_reads_the_first_and_the_last_of_three_contents() -> None:
    a = data(4)
    was = a.numpy().copy()
    first = a.flip(0)
    total = first + a.assign(a + 1).assign(a * 3)
    np.testing.assert_array_equal(total.numpy(), was[::-1] + (was + 1) * 3)


def test_a_kernel_that_reads_three_contents_of_a_buffer() -> None:
    a = data(5)
    was = a.numpy().copy()
    first = a.flip(0)
    a.assign(a * 2)
    second = a.reshape(5, 1).flip(0).reshape(5)
    a.assign(a + first)
    third = a * 3
    a.assign(a - second)
    twice, sum_ = was * 2, was * 2 + was[::-1]
    total = (first + second + third + a).numpy()
    np.testing.assert_allclose(total, was[::-1] + twice[::-1] + sum_ * 3 + (sum_ - twice[::-1]), rtol=1e-6)
    np.testing.assert_allclose(a.numpy(), sum_ - twice[::-1], rtol=1e-6)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_assignments_that_read_what_each_other_overwrites(count: int) -> None:
    """Each tensor gets the elements of the next, turned round, and what was there before is added twice."""
    tensors = [data(4, seed=k) for k in range(count)]
    was = [t.numpy().copy() for t in tensors]
    for _ in range(2):
        old = [t.flip(0) for t in tensors]
        for k, t in enumerate(tensors):
            t.assign(old[(k + 1) % count] + old[k - 1])
        del old
        was = [was[(k + 1) % count][::-1] + was[k - 1][::-1] for k in range(count)]
    Tensor.realize_batch(tensors)
    for t, w in zip(tensors, was, strict=True):
        np.testing.assert_array_equal(t.numpy(), w)


def test_state_that_a_jitted_function_exchanges() -> None:
    a, b = data(4), data(4, seed=1)

    @morok.jit
    def exchange() -> None:
        total, difference = a + b, a - b
        a.assign(total)
        b.assign(difference)

    was = a.numpy().copy(), b.numpy().copy()
    for _ in range(3):
        exchange()
        was = was[0] + was[1], was[0] - was[1]
    np.testing.assert_array_equal(a.numpy(), was[0])
    np.testing.assert_array_equal(b.numpy(), was[1])


def test_equal_tensors_are_assigned_to_apart() -> None:
    a = data(4)
    was, memory = a.numpy().copy(), a.buffer
    x, y = Tensor(a), Tensor(a)
    x.assign(a + 1)
    y.assign(a + 2)
    a.assign(a * 4)
    Tensor.realize_batch([x, y, a])
    for t, wanted in ((x, was + 1), (y, was + 2), (a, was * 4)):
        np.testing.assert_array_equal(t.numpy(), wanted)
    assert a.buffer is memory


def test_exchanging_two_tensors() -> None:
    a, b = data(4), data(4, seed=1)
    was_a, was_b = a.numpy().copy(), b.numpy().copy()
    old_a, old_b = a * 1, b * 1
    a.assign(old_b)
    b.assign(old_a)
    Tensor.realize_batch([a, b])
    np.testing.assert_array_equal(a.numpy(), was_b)
    np.testing.assert_array_equal(b.numpy(), was_a)


def test_a_copy_of_what_is_overwritten_has_memory_of_its_own() -> None:
    a = data(6)
    was = a.numpy().copy()
    copy = a.flip(0).flip(0)
    a.assign(a * 2)
    np.testing.assert_array_equal(a.numpy(), was * 2)
    np.testing.assert_array_equal(copy.numpy(), was)


def test_tensors_that_one_computation_makes_equal_are_written_apart() -> None:
    """Scheduling finds that two tensors are one computation: they share memory until one of them is written."""
    a = data(4)
    a[1] = 7.0
    was = a.numpy().copy()
    a[2] = 8.0
    x, y = a.contiguous(), a.contiguous()
    a.assign(a * 2)
    y.realize()
    a.realize()
    y[0] = 9.0
    Tensor.realize_batch([y])
    was[2] = 8.0
    np.testing.assert_array_equal(x.numpy(), was)
    np.testing.assert_array_equal(y.numpy(), [9.0, *was[1:]])
    np.testing.assert_array_equal(a.numpy(), was * 2)


def test_what_reads_between_two_assignments_reads_in_between() -> None:
    a, c = data(4), data(4, seed=1)
    source = c.numpy()
    a.assign(c + 1)
    middle = a.flip(0) * 3  # nothing is computed yet
    a.assign(c + 2)
    np.testing.assert_array_equal(a.numpy(), source + 2)
    np.testing.assert_allclose(middle.numpy(), (source + 1)[::-1] * 3)


def test_readers_of_what_a_reader_assigns_are_computed_too() -> None:
    x, y = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
    before_x, before_y = x + x, y + y
    x.assign(x * 10)
    y.assign(y * 10)
    both = before_x * y  # has to be computed with x, and assigns y
    x.realize()
    assert before_y.tolist() == [6.0, 8.0]
    assert before_x.tolist() == [2.0, 4.0]
    assert both.tolist() == [60.0, 160.0]
    assert (x.tolist(), y.tolist()) == ([10.0, 20.0], [30.0, 40.0])


def test_what_is_contiguous_already_assigns_once() -> None:
    for copies in (Tensor.contiguous, lambda t: t.contiguous().contiguous()):
        x = Tensor([1.0, 2.0]).realize()
        x.assign(x + 1)
        c = copies(x)
        product = c * x
        c.realize()
        assert c.tolist() == [2.0, 3.0]
        assert x.tolist() == [2.0, 3.0]
        assert product.tolist() == [4.0, 9.0]


def test_assigning_what_keeps_rows_inside_its_kernel() -> None:
    """A softmax has a buffer of its own in the kernel that assigns it; what it reads there is ordered too."""
    x = np.random.default_rng(2).standard_normal((5, 40)).astype(np.float32)
    wanted = np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)
    a, out = Tensor(x.copy()), Tensor(np.zeros((5, 40), np.float32))
    out.assign(a.softmax(-1))
    late = a + 1
    a.assign(a * 0)
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-5)
    np.testing.assert_array_equal(late.numpy(), x + 1)
    np.testing.assert_array_equal(a.numpy(), x * 0)
    b = Tensor(x.copy())
    b.assign(b.softmax(-1))  # over itself
    np.testing.assert_allclose(b.numpy(), wanted, rtol=1e-5)


def test_what_a_pending_assignment_reads_is_overwritten_after_it() -> None:
    a, b = data(4), data(4, seed=1)
    was = a.numpy().copy()
    b.assign(a + 1)
    twice = b * 2
    a.assign(a * 0)
    a.realize()
    np.testing.assert_array_equal(twice.numpy(), (was + 1) * 2)
    np.testing.assert_array_equal(b.numpy(), was + 1)
    c, d = data(4), data(4, seed=1)
    d.assign(c + 1)
    c.assign(c * 0).realize()
    np.testing.assert_array_equal(d.numpy(), was + 1)


def test_contents_that_are_copied_twice() -> None:
    """Three contents of one buffer in one kernel: of the second copy a node is a target alone, and is computed no more."""
    s = Tensor(np.arange(9.0).reshape(3, 3))
    a = s.numpy().copy()
    rolled = s.roll(1, 0)
    s.assign(rolled)
    product = rolled * s
    s[1] = Tensor(np.ones(3))
    s[Tensor([2, 0])] = product[:2]
    a = np.roll(a, 1, 0)
    wanted = a * a
    a[1] = 1
    a[[2, 0]] = wanted[:2]
    np.testing.assert_array_equal(s.numpy(), a)
