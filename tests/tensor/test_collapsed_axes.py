"""The axes of `~` as one: what becomes one axis, what stays, and that the values are the same."""
from __future__ import annotations

import random
import sys
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caten import loading
from caten.core.program import AnyAxes, Collapsed, Require, Scalar
from caten.core.text import show
from caten.errors import CatenError
from caten.frontend import operator_library as library
from caten.frontend.generic_signature import read_instance
from caten.frontend.op import OpProgram
from caten.frontend.spec_files import SpecText
from caten.frontend.structure import structure
from caten.options import Options
from caten.passes import verify_op
from caten.semantics import tensor_meaning
from caten.tensor.collapsed_axes import collapsed
from caten.tensor.values import TensorProgram

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "nets"))
import library_instances


def program(inputs: str, outputs: str, code: str, instance: str, attributes: str = "") -> OpProgram:
    def quoted(text: str) -> str:
        return ", ".join([f'"{part.strip()}"' for part in text.split(";") if part.strip()])
    text = (f'[composite]\nname = "Op"\nattributes = [{quoted(attributes)}]\ninputs = [{quoted(inputs)}]\noutputs = [{quoted(outputs)}]\n\n'
            f'[implementation]\nlang = "python"\ncode = """\n{code}\n"""\n')
    found = loading.loaded([SpecText("op.toml", text)], Options(instances=(read_instance(instance),)))[0]
    assert isinstance(found, OpProgram)
    return found


ADD = "X{T}[~]; Z{T}[~]", "Y{T}[~]", "Y = X + Z"
SUM = "X{T}[~]", "Y{T}[...]", "return X.sum(axis=axis)"
NORM = "X{T}[~ N]; w{T}[N]", "Y{T}[~ N]", "d = X - X.mean(axis=-1, keepdims=True)\nY = d * w"
PRODUCT = "A{T}[~ M K]; B{T}[~ K N]", "C{T}[~ M N]", "C = A @ B"


@pytest.mark.parametrize(("of", "instance", "attributes", "sizes"), [
    (ADD, "X=float32[A] Z=float32[A]", "", {"A": ("A",)}),
    (ADD, "X=float32[A,B,C] Z=float32[A,B,C]", "", {"A": ("A", "B", "C")}),
    (ADD, "X=float32[A,B,C] Z=float32[B,C]", "", {"A": ("A",), "B": ("B", "C")}),
    (ADD, "X=float32[A,B,C] Z=float32[A,1,1]", "", {"A": ("A",), "B": ("B", "C")}),
    (ADD, "X=float32[A,B,C] Z=float32[A,1,C]", "", {"A": ("A",), "B": ("B",), "C": ("C",)}),
    (ADD, "X=float32[A,B,C] Z=float32[]", "", {"A": ("A", "B", "C")}),
    (SUM, "X=float32[A,B,C,D] axis=none", "axis = none", {"A": ("A", "B", "C", "D")}),
    (SUM, "X=float32[A,B,C,D] axis=1", "axis = none", {"A": ("A",), "B": ("B",), "C": ("C", "D")}),
    (SUM, "X=float32[A,B,C,D] axis=[0,1]", "axis = none", {"A": ("A", "B"), "C": ("C", "D")}),
    (SUM, "X=float32[A,B,C,D] axis=[0,2]", "axis = none", {"A": ("A",), "B": ("B",), "C": ("C",), "D": ("D",)}),
    (NORM, "X=float32[A,B,N] w=float32[N]", "", {"A": ("A", "B")}),
    (PRODUCT, "A=float32[P,Q,M,K] B=float32[P,Q,K,N]", "", {"P": ("P", "Q")}),
    (("X{T}[~]", "Y{T}[~]", "Y = np.cumsum(X, axis=axis)"), "X=float32[A,B,C,D] axis=1", "axis = 0", {"A": ("A",), "C": ("C", "D")}),
    (("X{T}[~]", "Y{i64}[...]", "return X.argmax(axis=axis)"), "X=float32[A,B,C] axis=-1", "axis = 0", {"A": ("A", "B")}),
    (("X{T}[~]", "Y{T}[...]", "return np.transpose(X)"), "X=float32[A,B,C]", "", {"A": ("A",), "B": ("B",), "C": ("C",)}),
    (("X{T}[~]", "Y{T}[...]", "return X[..., ::-1]"), "X=float32[A,B,C]", "", {"A": ("A", "B")}),
    # An extent that is a number of the formula, an index that is one, column-major order, a size that must be something.
    (("X{T}[~]", "Y{T}[...]", "return X.mean()"), "X=float32[A,B]", "", {}),
    (("X{T}[~]", "Y{T}[...]", "return X.reshape(-1)"), "X=float32[A,B]", "", {}),
    (("X{T}[~ M]<0 ~>", "Y{T}[~ M]", "Y = X"), "X=float32[A,B,M]", "", {}),
    (("X{T}[~](where M = 2)", "Y{T}[~]", "Y = X"), "X=float32[M,A,B]", "", {"A": ("A", "B")}),
])
def test_what_becomes_one_axis(of: tuple[str, str, str], instance: str, attributes: str, sizes: dict[str, tuple[str, ...]]) -> None:
    whole = program(*of, instance, attributes)
    made, found = collapsed(whole)
    assert found == sizes
    assert (made == whole) == (not sizes)
    verify_op(made)
    fact = made.first(Collapsed)
    assert (fact.names if fact else ()) == tuple(sizes)
    assert loading.read_programs(SpecText("op.lisp", show(made), "lisp"))[0] == made


def test_a_body_in_loops_and_a_schedule_stay() -> None:
    rows = program("X{T}[~ N]; k{i64}[N]", "Y{T}[~ N]", "for j in range(N):\n    Y[..., j] = X[..., k[j]] + j", "X=float32[A,B,N]")
    assert collapsed(rows)[1] in ({}, {"A": ("A", "B")})
    plain = loading.loaded([SpecText("p.toml", '[composite]\nname = "P"\ninputs = ["X{float}[M N]"]\noutputs = ["Y{float}[M N]"]\n'
                                               '[implementation]\nlang = "python"\ncode = "Y = X + 1"\n')], Options())[0]
    assert plain.first(AnyAxes) is None
    assert collapsed(plain) == (plain, {})


@pytest.mark.parametrize(("of", "one", "other"), [
    (ADD, "X=float32[A] Z=float32[A]", "X=float32[A,B,C,D] Z=float32[A,B,C,D]"),
    (SUM, "X=float32[A,B]", "X=float32[A,B,C]"),
    (NORM, "X=float32[A,N]", "X=float32[A,B,C,N]"),
    (PRODUCT, "A=float32[P,M,K] B=float32[P,K,N]", "A=float32[P,Q,R,M,K] B=float32[P,Q,R,K,N]"),
])
def test_ranks_have_one_structure(of: tuple[str, str, str], one: str, other: str) -> None:
    attributes = "axis = -1" if "axis" in of[2] else ""
    assert structure(collapsed(program(*of, one, attributes))[0]).tokens == structure(collapsed(program(*of, other, attributes))[0]).tokens


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize("seed", range(2))
def test_operators_of_the_library_have_the_same_values(seed: int, nightly: bool) -> None:
    compared, fewer = 0, 0
    entries = [e for e in library_instances.operators(library.entries()) if "~" in " ".join(e.table["inputs"])]
    for entry in entries if nightly else random.Random(seed).sample(entries, 8):
        draw = random.Random(f"{seed} {entry.name}")
        for _ in range(3):
            instance, sizes = library_instances._case(entry.name, entry.table, draw)
            try:
                found = loading.loaded([entry.spec], Options(only=(entry.name,), instances=(read_instance(instance),)))[0]
            except CatenError:
                continue                                           # types or axes that it does not have
            assert isinstance(found, OpProgram)
            made, groups = collapsed(found)
            known = {n: sizes.get(n, 3) for n in found.sizes}
            numbers: dict[str, Any] = {n: np.int64(v) for n, v in known.items()} | {s.name: 2 for s in found.all(Scalar)}
            if found.values is None or not groups or not all(tensor_meaning.element(r.cond, numbers, {}) for r in found.all(Require)):
                continue
            verify_op(made)
            compared += 1
            fewer += any(len(group) > 1 for group in groups.values())
            agree(found, made, groups, known, draw.randrange(1 << 30), f"{entry.name}: {instance}, {sizes}")
    assert compared > (150 if nightly else 5)
    assert fewer > compared // 4


def agree(found: OpProgram, made: OpProgram, groups: dict[str, tuple[str, ...]], known: dict[str, int], seed: int, said: str) -> None:
    """The interpreter gives both the same values."""
    shorter = known | {n: prod([known[each] for each in group]) for n, group in groups.items()}

    def arrays(program: OpProgram, extents: dict[str, int]) -> dict[str, Any]:
        rng, given = np.random.default_rng(seed), dict[str, Any]({n: extents[n] for n in program.sizes})
        values = {n: np.int64(v) for n, v in given.items()}
        given |= {s.name: tensor_meaning.numpy_dtype(s.type).type(2) for s in program.all(Scalar)}
        for b in program.buffers.values():
            shape = [int(tensor_meaning.element(e, values, {})) for e in b.shape]
            given[b.name] = rng.integers(0, 3, shape).astype(tensor_meaning.numpy_dtype(b.type))
        return given
    own, other = arrays(found, known), arrays(made, shorter)
    assert isinstance(found.values, TensorProgram)
    assert isinstance(made.values, TensorProgram)
    with np.errstate(all="ignore"):
        codes = tensor_meaning.run(found.values, own), tensor_meaning.run(made.values, other)
    assert codes[0] == codes[1], said
    for b in found.buffers.values() if not codes[0] else []:
        assert other[b.name].reshape(own[b.name].shape).tobytes() == own[b.name].tobytes(), said
