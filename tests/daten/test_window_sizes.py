"""The windows of convolutions are numbers in the program of a graph, with one program for each window."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daten import Tensor, Var, gradients, jit, operator, realization
from daten.assembly import assembled
from daten.graph_keys import leaves_of

RANDOM = np.random.default_rng(5)


def drawn(*shape: int) -> Tensor:
    return Tensor(RANDOM.integers(-4, 5, shape).astype(np.float32))


def numbers(*wanted: Tensor) -> list[int]:
    """The extents that are numbers in the program."""
    results = [t._ref for t in wanted]
    calls, leaves = leaves_of(results)
    return sorted(assembled(results, calls, leaves, None)[1].numbers.values())


def test_windows_are_numbers() -> None:
    image, weights = drawn(2, 3, 12, 13), drawn(4, 3, 5, 6)
    made = image.conv2d(weights)
    assert numbers(made) == [5, 6]
    assert numbers(*gradients((made * drawn(*made.shape)).sum(), [image])) == [5, 6]
    assert numbers(*gradients((made * drawn(*made.shape)).sum(), [weights])) == [5, 6]
    assert numbers(image.conv2d(weights, stride=(2, 2), dilation=(2, 2), padding=(2, 2))) == [5, 6]
    assert numbers(image.conv_transpose2d(drawn(3, 4, 5, 6), stride=(2, 2))) == [5, 6]
    each = drawn(3, 1, 5, 6)
    made = image.conv2d(each, groups=3)
    assert numbers(made)[-2:] == [5, 6]                                        # after the channels
    assert numbers(*gradients((made * drawn(*made.shape)).sum(), [each]))[-2:] == [5, 6]


def test_windows_of_16_bit_floats_are_numbers() -> None:
    image, weights, transposed = (Tensor(RANDOM.integers(-4, 5, shape).astype(np.float16)) for shape in ((2, 3, 12), (4, 3, 5), (3, 4, 5)))
    assert numbers(image.conv1d(weights)) == [5]
    assert numbers(image.conv_transpose1d(transposed, stride=(2,))) == [5]


def test_other_extents_stay_sizes() -> None:
    assert numbers(drawn(2, 3, 40).conv1d(drawn(4, 3, 20))) == []              # so wide a window is one
    assert numbers(drawn(3, 4) @ drawn(4, 5)) == []
    assert numbers(drawn(3, 4)[:, None] * drawn(5, 4)) == []


FIRST_TAPS = """
[[composite]]
name = "first_taps"
inputs = ["x{f32}[N]", "w{f32}[K]", "n{i64}[]"]
outputs = ["y{f32}[N]"]
[composite.implementation]
lang = "python"
code = '''
y = np.zeros(N, x.dtype)
for i in range(N):
    for k in range(n):
        if i + k < N and k < K:
            y[i] += x[i + k] * w[k]
return y
'''
"""


def test_a_window_as_long_as_a_number_says_is_no_size(tmp_path: Path) -> None:
    spec = tmp_path / "first_taps.toml"
    spec.write_text(FIRST_TAPS)
    assert numbers(operator(spec)(drawn(8), drawn(3), 2)) == []


@pytest.mark.slow
def test_a_window_that_varies_is_traced_once() -> None:
    ran: list[int] = []

    def convolved(x: Tensor, w: Tensor) -> Tensor:
        ran.append(1)
        return x.conv1d(w)
    function = jit(convolved, dynamic_shapes={"w": {2: Var("k", 2, 9)}})
    for width in (3, 4, 7):
        x, w = drawn(2, 3, 11), drawn(4, 3, width)
        wanted = np.einsum("nctk,ock->not", np.lib.stride_tricks.sliding_window_view(x.numpy(), width, axis=2), w.numpy())
        np.testing.assert_array_equal(function(x, w).numpy(), wanted)
        np.testing.assert_array_equal(x.conv1d(w).numpy(), wanted)
    assert len(ran) == 1


def test_images_are_numbers_in_the_first_program_of_a_graph_and_sizes_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of another length needs no other program, images of other sizes need one for all of them."""
    made: list[list[int]] = []
    whole = realization.program_of

    def note(*given: Any, fixes_images: bool) -> Any:
        found = whole(*given, fixes_images=fixes_images)
        made.append(sorted(found[1].numbers.values()))
        return found
    monkeypatch.setattr(realization, "program_of", note)
    weights = Tensor(drawn(2, 3, 3, 4).numpy(), requires_grad=True)
    for batch, height, width in ((2, 8, 9), (5, 8, 9), (2, 7, 9), (3, 6, 11)):
        image = drawn(batch, 3, height, width)
        got = image.conv2d(weights, stride=(1, 2)).numpy()
        rows = np.lib.stride_tricks.sliding_window_view(image.numpy(), (3, 4), (2, 3))[:, :, :, ::2]
        assert np.array_equal(got, np.einsum("nchwpq,ocpq->nohw", rows, weights.numpy()))
    first, second = made
    assert {8, 9} <= {*first}
    assert {6, 7, 8, 9, 11}.isdisjoint(second)


def test_images_of_transposed_convolutions_and_of_gradients_are_numbers() -> None:
    def fixed(*wanted: Tensor) -> set[int]:
        results = [t._ref for t in wanted]
        return {*assembled(results, *leaves_of(results), fixes_images=True)[1].numbers.values()}
    image, weights = drawn(2, 3, 12, 13), drawn(4, 3, 5, 6)
    made = image.conv2d(weights)
    assert {12, 13} <= fixed(made)
    for by in (image, weights):
        assert {12, 13} <= fixed(*gradients((made * drawn(*made.shape)).sum(), [by]))
    assert {12, 13} <= fixed(image.conv_transpose2d(drawn(3, 4, 5, 6), stride=(2, 2)))
    assert 2 not in fixed(made)                                                # the batch
    assert fixed(drawn(7, 8) @ drawn(8, 9)) == set()
