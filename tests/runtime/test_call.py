"""Calling: arrays and scalars in, results out."""
from __future__ import annotations

import array
import ctypes
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from native_calls import (
    FILL,
    FILL_C,
    SCALE,
    SCALE_C,
    STRIDED,
    STRIDED_C,
    SWAP,
    SWAP_C,
    TAKE,
    TAKE_C,
    Native,
    matrices,
    one,
    refused,
)

from caten.calls import array_arguments
from caten.errors import CatenError
from caten.runtime.call import Operator, Operators, callables


def test_inout_is_updated_in_place_and_returned(gemm: Operator) -> None:
    for _ in range(3):                                       # the second and third call are direct
        a, b, c = matrices()
        want = a @ b + c
        assert gemm(a, b, c) is c
        np.testing.assert_array_equal(c, want)


def test_arguments_by_name(gemm: Operator) -> None:
    a, b, c = matrices()
    want = a @ b + c
    np.testing.assert_array_equal(gemm(a, C=c, B=b), want)
    refused("E705", "M", lambda: gemm(a, b, c, M=6))
    np.testing.assert_array_equal(gemm(a, b, c, M=5), want + a @ b)


def test_other_shapes_get_other_plans(gemm: Operator) -> None:
    for shape in [(1, 1, 1), (2, 3, 4), (4, 3, 2), (0, 2, 2), (2, 0, 2), (2, 2, 0)] * 2:
        a, b, c = matrices(*shape)
        want = a @ b + c
        np.testing.assert_array_equal(gemm(a, b, c), want)


@pytest.mark.parametrize("twice", [1, 2])
def test_layouts_that_do_not_fit_are_copied_in_and_out(gemm: Operator, twice: int) -> None:
    a, b, c = matrices(6, 4, 6)
    for _ in range(twice):
        big = np.zeros((12, 12), np.float32)
        view = big[::2, ::-2]
        view[...] = c
        assert gemm(np.asfortranarray(a), b[::-1][::-1], view) is view
        np.testing.assert_array_equal(view, a @ b + c)
        assert not big[1::2].any()


def test_a_copied_output_is_read_before_it_is_written(gemm: Operator) -> None:
    a, b, c = matrices()
    f = np.asfortranarray(c)
    gemm(a, b, f)
    np.testing.assert_array_equal(f, a @ b + c)


def test_misaligned_arrays_are_copied(gemm: Operator) -> None:
    a, b, c = matrices()
    raw = np.zeros(a.nbytes + 1, np.uint8)
    odd = raw[1:].view(np.float32).reshape(a.shape)
    odd[...] = a
    want = a @ b + c
    for _ in range(2):
        np.testing.assert_array_equal(gemm(odd, b, c.copy()), want)


def test_an_input_that_overlaps_an_output_is_copied(native: Native) -> None:
    shifted = one(native, TAKE_C, TAKE)
    apart, same = lambda m: (m[:8], m[8:]), lambda m: (m[:8], m[:8])         # after the first one, calls are direct
    for make in (apart, same, lambda m: (m[:8], m[1:9]), lambda m: (m[1:9], m[:8]), apart):
        for _ in range(3):
            memory = np.arange(16, dtype=np.int32)
            x, y = make(memory)
            want = np.concatenate([[0], x[:-1]]) + 1
            np.testing.assert_array_equal(shifted(x, y), want)


def test_outputs_may_not_share_memory(native: Native) -> None:
    swap = one(native, SWAP_C, SWAP)
    memory = np.arange(8, dtype=np.int32)
    q, p = swap(memory[:4], memory[4:])                                      # in the order of the spec's outputs
    np.testing.assert_array_equal(memory, [4, 5, 6, 7, 0, 1, 2, 3])
    assert p.base is memory
    assert q.base is memory
    refused("E713", "P and Q share memory", lambda: swap(memory[:4], memory[2:6]))
    refused("E713", "P and Q share memory", lambda: swap(memory[:4], memory[:4]))
    swap(memory[::2], memory[1::2])                                          # they lie between each other and share nothing
    np.testing.assert_array_equal(memory, [5, 4, 7, 6, 1, 0, 3, 2])
    once = np.lib.stride_tricks.as_strided(np.zeros(1, np.int32), (4,), (0,))
    refused("E713", "elements of the output P share memory with each other", lambda: swap(once, memory[:4]))


def test_elements_of_one_array_that_share_memory() -> None:
    memory = np.zeros(12)
    apart = [memory[::-2], memory.reshape(3, 4).T, memory.reshape(3, 4)[:, ::2], memory[:0], memory[:1], memory.reshape(2, 3, 2).transpose(2, 0, 1)]
    assert not any(array_arguments.folded(a) for a in apart)
    assert array_arguments.folded(np.lib.stride_tricks.sliding_window_view(memory, 3))
    assert array_arguments.folded(np.broadcast_to(memory, (2, 12)))


def test_pure_outputs_are_allocated_or_given(native: Native) -> None:
    scale = one(native, SCALE_C, SCALE)
    x = np.arange(6.0).reshape(2, 3)
    for _ in range(3):
        y, s = scale(x, 2)
        np.testing.assert_array_equal(y, 2 * x)
        assert s.shape == ()
        assert s == 2
    y, s = np.empty((2, 3)), np.empty(())
    for _ in range(3):
        got = scale(x, alpha=np.float32(0.5), out=(y, s))
        assert got[0] is y
        assert got[1] is s
        np.testing.assert_array_equal(y, x / 2)
    refused("E713", "takes 2 arrays, Y, S; 1", lambda: scale(x, 2, out=y))
    np.testing.assert_array_equal(scale(np.asfortranarray(x), 3)[0], 3 * x)


def test_sizes_that_no_shape_determines_are_given_by_name(native: Native) -> None:
    fill = one(native, FILL_C, FILL)
    np.testing.assert_array_equal(fill(-3, True, 2 + 1j, N=2), [12097] * 4)
    np.testing.assert_array_equal(fill(-3, np.bool_(False), 0, out=np.empty(6, np.int32)), [-3] * 6)
    out = np.empty(2, np.int32)
    for _ in range(3):
        assert fill(1, False, 0.5, out=out) is out
    np.testing.assert_array_equal(out, [501, 501])
    refused("E707", "size N", lambda: fill(1, True, 0))
    refused("E710", "size N is -1", lambda: fill(1, True, 0, N=-1))
    refused("E710", "size N", lambda: fill(1, True, 0, N=(1 << 40) + 1))
    refused("E708", "size N must be an integer", lambda: fill(1, True, 0, N=2.0))
    refused("E704", "axis 0 of Y must be (* 2 N), which cannot be 5", lambda: fill(1, True, 0, out=np.empty(5, np.int32)))
    refused("E704", "axis 0 of Y must be (* 2 N) = 4 (with N = 2), and is 6", lambda: fill(1, True, 0, N=2, out=np.empty(6, np.int32)))


def test_strided_arrays_pass_their_strides(native: Native) -> None:
    copy = one(native, STRIDED_C, STRIDED)
    assert [a["kind"] for a in copy.manifest["arguments"]] == ["tensor", "tensor", "size", "size", "stride"]
    big = np.arange(40, dtype=np.float32).reshape(4, 10)
    b = np.zeros((4, 3), np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(copy(big[:, 2:5], b), big[:, 2:5] + 1000)
        np.testing.assert_array_equal(copy(big[:, 2:5].copy(), b), big[:, 2:5])
        np.testing.assert_array_equal(copy(big[:, 2:8:2], b), big[:, 2:8:2])               # the fastest axis is not dense: copied
        np.testing.assert_array_equal(copy(big[::-1, 2:5], b), big[::-1, 2:5])             # a negative stride: copied


def test_buffers_and_dlpack_are_taken_without_a_copy(native: Native) -> None:
    shifted = one(native, TAKE_C, TAKE)
    x, y = array.array("i", [5, 6, 7]), (ctypes.c_int32 * 3)()
    assert shifted(x, y) is y
    assert list(y) == [1, 6, 7]

    class Tensor:
        def __init__(self, data: Any, **versioned: Any):
            self.data, self.versioned = data, versioned

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.data.__dlpack_device__()  # type: ignore[no-any-return]

    class Old(Tensor):
        def __dlpack__(self, stream: Any = None) -> Any:
            return self.data.__dlpack__()

    class New(Tensor):
        def __dlpack__(self, **kwargs: Any) -> Any:
            return self.data.__dlpack__(**kwargs)

    class Elsewhere(Old):
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    for cls in (Old, New):
        data = np.zeros(3, np.int32)
        shifted(cls(np.array([5, 6, 7], np.int32)), cls(data))
        np.testing.assert_array_equal(data, [1, 6, 7])
    frozen = np.zeros(3, np.int32)
    frozen.flags.writeable = False
    with pytest.raises(CatenError):
        shifted(x, New(frozen))
    refused("E714", "X does not lie in main memory", lambda: shifted(Elsewhere(frozen), y))


def test_bind_repeats_a_call(gemm: Operator) -> None:
    a, b, c = matrices()
    first = c.copy()
    run = gemm.bind(a, b, c)
    np.testing.assert_array_equal(c, first)                  # binding does not run it
    for n in (1, 2):
        assert run() is c
        np.testing.assert_array_equal(c, first + n * (a @ b))
    view = np.asfortranarray(first)
    run = gemm.bind(a, b, view)
    for n in (1, 2):
        run()
        np.testing.assert_array_equal(view, first + n * (a @ b))
    a, b, c = matrices(13)
    refused("E711", "M is 13", gemm.bind(a, b, c))


def test_it_says_what_it_is(gemm: Operator, native: Native) -> None:
    assert gemm.name == gemm.__name__ == "Gemm"
    assert "C <- A @ B + C" in (gemm.__doc__ or "")
    assert list(inspect.signature(gemm).parameters) == ["A", "B", "C"]
    assert gemm.signature == "Gemm(A: float32[M, K], B: float32[K, N], C: float32[M, N]) -> C"
    assert gemm.schedule == "(schedule)"
    fill = one(native, FILL_C, FILL)
    assert str(inspect.signature(fill)) == "(v, b, z, Y=None, *, N, out=None)"


def test_several_operators_are_attributes(native: Native) -> None:
    ops = callables(native(TAKE_C + SWAP_C, TAKE, SWAP))
    assert isinstance(ops, Operators)
    assert list(ops) == ["Shifted", "Swap"]
    assert ops.Swap is ops["Swap"]
    assert "Swap" in dir(ops)
    np.testing.assert_array_equal(ops.Shifted(np.array([1, 2], np.int32), np.zeros(2, np.int32)), [1, 2])
    with pytest.raises(AttributeError, match="did you mean 'Swap'"):
        _ = ops.swop


def test_threads_share_one_callable(gemm: Operator) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(50):
            m, k, n = rng.integers(1, 9, 3)
            a, b = rng.integers(-3, 4, (m, k)).astype(np.float32), rng.integers(-3, 4, (k, n)).astype(np.float32)
            if not np.array_equal(gemm(a, b, np.zeros((m, n), np.float32)), a @ b):
                wrong.append(seed)
    threads = [threading.Thread(target=work, args=(s,)) for s in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_repeated_call_is_cheap(gemm: Operator) -> None:
    a, b, c = matrices(1, 1, 1)
    bound = gemm.bind(a, b, c)
    gemm(a, b, c)

    def best(call: Callable[[], Any]) -> float:
        found = 1.0
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(200):
                call()
            found = min(found, (time.perf_counter() - start) / 200)
        return found * 1e6
    assert best(lambda: gemm(a, b, c)) < 15                  # about 3 on an idle machine
    assert best(bound) < 6                                   # about 0.5
