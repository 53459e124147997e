"""Calls with arrays of one, three and four axes are calls of one kernel: by whatever way, with the axes of each."""
from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caten
from caten import driver

OPS = {
    "add": lambda x: ((x, x), x + x),
    "softmax": lambda x: ((x,), np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
    "layer_norm": lambda x: ((x, x[(0,) * (x.ndim - 1)], x[(0,) * (x.ndim - 1)]), None),
    "sum": lambda x: ((x,), x.sum(dtype=np.float64)),
    "matmul": lambda x: ((x, x[..., :3, :].swapaxes(-1, -2).copy()), x @ x[..., :3, :].swapaxes(-1, -2)),
    "where": lambda x: ((x > 0, x, -x), np.abs(x)),
}
SHAPES = (3, 5), (2, 3, 5), (2, 4, 3, 5), (2, 2, 2, 3, 5)


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def operator(name: str) -> Any:
    """The operator of the library, with no instances yet."""
    from caten.frontend import operator_library
    entry = next(e for e in operator_library.entries() if e.name == name)
    return caten.compile(entry.source)


@pytest.mark.slice(2)
@pytest.mark.parametrize("name", OPS)
def test_ranks_load_one_library(name: str) -> None:
    op, libraries = operator(name), set[str]()
    for shape in SHAPES if name != "matmul" else SHAPES[1:]:
        args, expected = OPS[name](array(*shape))
        found = op(*args)
        assert found.shape == (np.shape(expected) if expected is not None else shape)
        if expected is not None:
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        libraries.add(str(op.operator(*args)._library.path))
    assert len(libraries) == 1


def test_a_new_rank_runs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    op = operator("softmax")
    op(array(3, 5))
    monkeypatch.setattr(driver, "advance", None)
    monkeypatch.setattr(driver, "render", None)
    np.testing.assert_allclose(op(array(2, 3, 5)).sum(axis=-1), np.ones((2, 3)), rtol=1e-5)


def test_arrays_of_any_layout_and_given_outputs() -> None:
    op, x = operator("add"), array(2, 3, 4, 5)
    np.testing.assert_array_equal(op(x[:, ::-1], x.transpose(0, 1, 2, 3)), x[:, ::-1] + x)
    np.testing.assert_array_equal(op(x[..., ::2], x[..., ::2]), 2 * x[..., ::2])
    out = np.zeros_like(x)
    for _ in range(3):
        assert op(x, x, out=out) is out
    np.testing.assert_array_equal(out, 2 * x)
    strided = np.zeros((2, 3, 4, 10), np.float32)[..., ::2]
    op(x, x, out=strided)
    np.testing.assert_array_equal(strided, 2 * x)
    assert op(x, x, out=x) is x                            # in place
    np.testing.assert_array_equal(x, out)
    for empty in ((0, 3), (2, 0, 3), (0, 0, 0, 0)):
        assert op(np.zeros(empty, np.float32), np.zeros(empty, np.float32)).shape == empty


def test_what_goes_directly_to_the_kernel_and_what_does_not() -> None:
    op = operator("add")
    x = array(2, 3, 4)
    one = op.operator(x, x)
    seen: list[tuple[Any, ...]] = []
    direct = one.attached(lambda *args, **named: seen.append(args))
    assert direct is not None
    np.testing.assert_array_equal(direct(x, x), x + x)
    out = np.empty_like(x)
    assert direct(x, x, out=out) is out
    assert not seen
    for args in ((x, x[:, :, :2].copy()), (x.reshape(6, 4), x), (x.reshape(6, 4), x.reshape(6, 4)), (x, x.reshape(3, 2, 4)), (x, x.astype(np.float64)),
                 (x.reshape(4, 3, 2), x), (x.reshape(1, 2, 3, 4), x)):
        direct(*args)
    direct(x, x, out=np.empty((3, 2, 4), np.float32))
    direct(x, x, out=x[::-1])
    assert len(seen) == 9
    norm = operator("layer_norm")
    rows = norm.operator(x, x[0, 0], x[0, 0])
    direct = rows.attached(lambda *args, **named: seen.append(args))
    assert direct is not None
    np.testing.assert_allclose(direct(x, x[0, 0], x[0, 0]), norm(x, x[0, 0], x[0, 0]))
    assert len(seen) == 9
    direct(x.reshape(2, 4, 3), x[0, 0], x[0, 0])
    assert len(seen) == 10


def test_several_outputs_and_blocks() -> None:
    text = ('[composite]\nname = "Both"\ninputs = ["X{T}[~ K ~]"]\noutputs = ["Y{T}[...]"]\n[implementation]\nlang = "python"\ncode = "return X"\n')
    with pytest.raises(caten.CatenError):
        caten.compile(text)(array(2, 3))
    text = ('[composite]\nname = "Both"\nattributes = ["axis = 1"]\ninputs = ["X{T}[~]"]\noutputs = ["Y{T}[...]", "Z{T}[~]"]\n'
            '[implementation]\nlang = "python"\ncode = "return X.sum(axis=axis), X * 2"\n')
    op = caten.compile(text)
    for shape, axis in (((2, 3, 4), 1), ((2, 3, 4, 5), 1), ((2, 3, 4, 5, 2), 2), ((2, 3), 1)):
        x = array(*shape)
        for _ in range(3):
            total, twice = op(x, axis=axis)
        np.testing.assert_allclose(total, x.sum(axis=axis), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(twice, 2 * x)
    assert len({str(i._library.path) for i in op.instances}) == 2              # with axes behind the one that is summed, and without


def test_errors_name_the_axes_of_the_caller() -> None:
    op = operator("layer_norm")
    x = array(2, 3, 4)
    op(x, x[0, 0], x[0, 0])
    with pytest.raises(caten.CatenError, match=r"layer_norm: .*N.* 4.* 3"):
        op(x, x[0, 0], array(3))
    one = op.operator(x, x[0, 0], x[0, 0])
    assert [a.shape for a in one.arguments] == [("axis0", "axis1", "N"), ("N",), ("N",), ("axis0", "axis1", "N")]
    assert one.sizes == ("axis0", "axis1", "N")
    assert "x{f32}[axis0 axis1 N]" in one.signature
    with pytest.raises(caten.CatenError, match="E713"):
        one(x, x[0, 0], x[0, 0], out=())


def test_it_says_what_its_kernel_is(tmp_path: Path) -> None:
    op = operator("softmax")
    flat, deep = [op.operator(array(*shape)) for shape in ((3, 5), (2, 3, 5))]
    assert deep.schedule.count("(") == flat.schedule.count("(")
    assert "axis0" in deep.source
    assert deep.manifest["symbols"] == flat.manifest["symbols"]
    assert "axis0" in deep.manifest["any_axes"]
    x = array(2, 3, 5)
    for other in (copy.deepcopy(deep), pickle.loads(pickle.dumps(deep))):
        np.testing.assert_array_equal(other(x), deep(x))
        assert [a.shape for a in other.arguments] == [("axis0", "axis1", "axis2")] * 2
        np.testing.assert_array_equal(other.bind(x)(), deep(x))


def test_another_process_loads_it_from_a_pickle(tmp_path: Path) -> None:
    op, x = operator("softmax"), array(2, 3, 5)
    (tmp_path / "op.pickle").write_bytes(pickle.dumps((op.operator(x), x)))
    code = "import pickle, sys; op, x = pickle.load(open(sys.argv[1], 'rb')); print([op(x).shape for _ in range(3)], op.bind(x)().sum())"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "op.pickle")], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("[(2, 3, 5), (2, 3, 5), (2, 3, 5)] "), done.stderr
    assert abs(float(done.stdout.split()[-1]) - 6) < 1e-5


def test_schedules_strides_and_interpreted_runtimes_have_all_axes() -> None:
    x = array(2, 3, 4)
    spec = '[composite]\nname = "Twice"\ninputs = ["X{T}[~]"]\noutputs = ["Y{T}[~]"]\n[implementation]\nlang = "python"\ncode = "Y = X * 2"\n'
    strided = caten.compile(spec, strided=["X"])
    np.testing.assert_array_equal(strided(x[:, ::2]), 2 * x[:, ::2])
    assert "any_axes" not in strided.operator(x).manifest
    slow = caten.compile(spec, runtime="numpy")
    np.testing.assert_array_equal(slow(x), 2 * x)
    assert "any_axes" not in slow.operator(x).manifest
