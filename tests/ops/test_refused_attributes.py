"""Values of attributes that an operator does not know are refused at the call, with the values that it knows."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import caten
from caten.errors import CatenError
from caten.frontend import operator_library as library
from daten import Tensor
from daten.tensor import apply

SPEC = """[composite]
name = "Shrink"
attributes = ["mode = 'floor'", "step = [2, 2]", "rate = 0.5"]
inputs = ["x{Floating}[N]"]
outputs = ["y{Floating}[...]"]

[implementation]
lang = "python"
code = '''
assert mode in ("floor", "ceil", "round")
assert min(step) >= 1, "a step is 1 or more"
assert 0 <= rate <= 1
return x[::step[0]] * rate
'''
"""
X, KEY, IMAGE, WEIGHT = np.ones(4), np.zeros(2, np.uint32), np.ones((1, 1, 9, 8)), np.ones((1, 1, 2, 2))


@pytest.mark.parametrize(("attributes", "message", "hint"), [
    ({"mode": "flor"}, "Shrink: mode is 'flor', and has to be 'floor', 'ceil' or 'round'", "did you mean 'floor'?"),
    ({"mode": "even"}, "Shrink: mode is 'even', and has to be 'floor', 'ceil' or 'round'", None),
    ({"step": (1, 0)}, "Shrink: step is (1, 0): a step is 1 or more", None),
    ({"rate": 1.5}, "Shrink: rate is 1.5, and has to satisfy 0 <= rate <= 1", None)])
def test_an_assertion_names_the_attribute(attributes: dict[str, Any], message: str, hint: str | None) -> None:
    shrink = caten.compile(SPEC)
    with pytest.raises(CatenError) as told:
        shrink(X, **attributes)
    (found,) = told.value.diagnostics
    assert (found.code, found.message, found.hint) == ("E675", message, hint)


def test_a_body_that_calls_the_operator_is_told() -> None:
    text = '[composite]\nname = "Half"\ninputs = ["x{float}[N]"]\noutputs = ["y{float}[N]"]\n\n[implementation]\nlang = "python"\ncode = "return gelu(x, approximate=\'tahn\')"\n'
    with pytest.raises(CatenError, match=r"(?s)E314: gelu: approximate is 'tahn', and has to be 'none' or 'tanh'.*did you mean 'tanh'"):
        caten.compile(text)


@pytest.mark.parametrize(("name", "inputs", "attributes", "said"), [
    ("gelu", (X,), {"approximate": "tahn"}, "'none' or 'tanh'"), ("conv2d", (IMAGE, WEIGHT), {"stride": (0, 0)}, "min(stride) >= 1"),
    ("conv2d", (IMAGE, WEIGHT), {"stride": (-1, -1)}, "min(stride) >= 1"), ("conv2d", (IMAGE, WEIGHT), {"dilation": (1, 0)}, "min(dilation) >= 1"),
    ("max_pool2d", (IMAGE,), {"kernel": (0, 1)}, "min(kernel) >= 1"), ("max_pool2d", (IMAGE,), {"stride": (2, 0)}, "min(stride) >= 1"),
    ("adaptive_avg_pool2d", (IMAGE,), {"size": (0, 2)}, "min(size) >= 1"), ("resize_nearest", (IMAGE,), {"size": (0, 2)}, "min(size) >= 1"),
    ("topk", (X,), {"k": -1}, "k >= 0"), ("quantile", (X,), {"q": 1.5}, "0 <= q <= 1"), ("dropout", (KEY, X), {"p": 1.5}, "0 <= p <= 1"),
    ("bernoulli", (KEY,), {"p": 2.0}, "0 <= p <= 1"), ("randint", (KEY,), {"low": 5, "high": 2}, "low < high"), ("rfft", (X,), {"norm": "orto"}, "'ortho'"),
    ("tensorinv", (X,), {}, "x has more than ind axes, for the rows and columns of a matrix"), ("tensorinv", (IMAGE,), {"ind": 0}, "ind > 0"),
    ("packbits", (np.ones(8, np.uint8),), {"bitorder": "bih"}, "'big' or 'little'")])
def test_operators_of_the_library(name: str, inputs: tuple[np.ndarray, ...], attributes: dict[str, Any], said: str) -> None:
    for call in (getattr(caten.ops, name), lambda *given, **named: apply(name, *map(Tensor, given), **named)):
        with pytest.raises(CatenError) as told:
            call(*inputs, **attributes)
        (found,) = told.value.diagnostics
        assert found.code == "E675"
        assert found.message.startswith(f"{name}: ")
        assert said in found.message


REDUCED = [e for e in library.entries() if any(text.startswith("reduction =") for text in e.table.get("attributes", ()))]


@pytest.mark.parametrize("entry", REDUCED, ids=lambda e: e.name)
def test_every_loss_knows_its_reductions(entry: library.Entry) -> None:
    kinds = [np.int64 if "Integer" in text else np.float64 for text in entry.table["inputs"]]
    ranks = [len(text.split("[")[1].split("]")[0].split()) for text in entry.table["inputs"]]
    inputs = [Tensor(np.zeros([2] * rank, kind)) for rank, kind in zip(ranks, kinds, strict=True)]
    with pytest.raises(CatenError, match=rf"E675: {entry.name}: reduction is 'avg', and has to be 'mean', 'sum' or 'none'"):
        apply(entry.name, *inputs, reduction="avg")


IMAGES = np.ones((1, 2, 6, 6), np.float32)
MISFITS = [
    ("max_pool2d", (IMAGES,), {"kernel": (2,)}, "the attribute 'kernel' is [2], and has to be a list of 2, such as [2, 2]"),
    ("max_pool2d", (IMAGES,), {"kernel": 2.5}, "the attribute 'kernel' is 2.5, and has to be a list of 2, such as [2.5, 2.5]"),
    ("avg_pool2d", (IMAGES,), {"stride": (2, 2, 2)}, "the attribute 'stride' is [2, 2, 2], and has to be a list of 2, such as [2, 2]"),
    ("max_pool2d", (IMAGES,), {"padding": (0, 0, 1)}, "the attribute 'padding' is [0, 0, 1], and has to be a list of 2, such as [0, 0]"),
    ("avg_pool2d", (IMAGES,), {"stride": (3,)}, "the attribute 'stride' is [3], and has to be a list of 2, such as [2, 2]"),
    ("conv2d", (IMAGES, IMAGES), {"padding": (1,)}, "the attribute 'padding' is [1], and has to be a list of 2, such as [0, 0]"),
    ("unravel_index", (np.arange(3),), {"shape": 4}, "the attribute 'shape' is 4, and has to be a list of 2, such as [4, 4]")]


@pytest.mark.parametrize(("name", "inputs", "attributes", "text"), MISFITS)
def test_what_is_no_list_of_that_length_is_refused_by_its_name(name: str, inputs: tuple[Any, ...], attributes: dict[str, Any], text: str) -> None:
    with pytest.raises(CatenError, match=f"^E675: {name}: {re.escape(text)}$"):
        apply(name, *map(Tensor, inputs), **attributes)
    with pytest.raises(CatenError, match=f"^E675: {name}: {re.escape(text)}$"):
        getattr(caten.ops, name)(*inputs, **attributes)


WEIGHTS = np.ones((2, 2, 3, 3), np.float32)
FOR_EACH_AXIS = [
    ("max_pool2d", (IMAGES,), {"kernel": 2}, {"kernel": (2, 2)}), ("avg_pool2d", (IMAGES,), {"stride": 3}, {"stride": (3, 3)}),
    ("max_pool1d", (IMAGES[0],), {"kernel": 3, "stride": 2, "padding": 1}, {"kernel": (3,), "stride": (2,), "padding": (1,)}),
    ("conv2d", (IMAGES, WEIGHTS), {"padding": 1, "stride": (2, 1)}, {"padding": (1, 1), "stride": (2, 1)}),
    ("conv_transpose2d", (IMAGES, WEIGHTS), {"stride": 2, "output_padding": 1}, {"stride": (2, 2), "output_padding": (1, 1)}),
    ("resize_nearest", (IMAGES,), {"size": 3}, {"size": (3, 3)}), ("adaptive_avg_pool2d", (IMAGES,), {"size": 1}, {"size": (1, 1)})]


@pytest.mark.parametrize(("name", "inputs", "number", "lists"), FOR_EACH_AXIS, ids=lambda v: v if isinstance(v, str) else "")
def test_a_number_is_that_of_each_axis(name: str, inputs: tuple[Any, ...], number: dict[str, Any], lists: dict[str, Any]) -> None:
    """It is the same operator, so nothing is compiled."""
    given, meant = [apply(name, *map(Tensor, inputs), **each)._ref.node for each in (number, lists)]
    assert given.template is meant.template


@pytest.mark.slow
def test_a_number_is_that_of_each_axis_for_arrays_and_in_bodies() -> None:
    image = np.arange(36.0, dtype=np.float32).reshape(1, 1, 6, 6)
    wanted = image.reshape(3, 2, 3, 2).max(axis=(1, 3))
    np.testing.assert_array_equal(caten.ops.max_pool2d(image, kernel=2)[0, 0], wanted)
    np.testing.assert_array_equal(caten.op(halved)(image)[0, 0], wanted)


def halved(x: Any) -> Any:
    return max_pool2d(x, kernel=2, stride=2)      # type: ignore[name-defined]  # noqa: F821


def pooled(x: Any) -> Any:
    return max_pool2d(x, kernel=(3,))      # type: ignore[name-defined]  # noqa: F821


def test_in_a_body_it_is_refused_at_the_call() -> None:
    with pytest.raises(CatenError, match=r"E314: max_pool2d: the attribute 'kernel' is \[3\], and has to be a list of 2, such as \[2, 2\]"):
        caten.op(pooled)(IMAGES)


def test_a_reshape_that_one_size_alone_allows_is_refused_where_it_is_written() -> None:
    spec = ('[composite]\nname = "One"\ninputs = ["X{float}[N]"]\noutputs = ["Y{float}[N]"]\n[implementation]\nlang = "python"\n'
            'code = "return inverse(X.reshape((N, N))).reshape(N)"\n')
    with pytest.raises(CatenError, match=r"E324: .* where N is greater than 1") as told:
        caten.compile(spec)
    (found,) = told.value.diagnostics
    assert found.place is not None
    assert (found.place.line, found.place.column) == (7, 24)
