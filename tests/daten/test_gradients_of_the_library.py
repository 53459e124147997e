"""Every operator of the library has gradients in a graph, or says that it has none."""
from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from caten import loading
from caten.core.dtypes import is_float
from caten.core.numpy_types import numpy_dtype
from caten.core.program import Attribute, Case, Scalar
from caten.core.size_formula import evaluate
from caten.errors import CatenError
from caten.frontend import operator_library as library
from caten.options import Options
from caten.testing.sizes_and_scalars import case_values
from daten import Tensor, gradients
from daten.assembly import assembled
from daten.graph_keys import leaves_of
from daten.tensor import apply

FAMILIES = sorted({e.family for e in library.entries()})
BY_DAY = ("indexing", "losses", "recurrent", "sparse")         # with gradients by hand


def graph_of(name: str) -> None:
    """Put together the gradients of the sum of all results of floats, at the sizes of the operator's first test case. Nothing is computed."""
    entry = library.entry_of(name)
    op = next(p for p in loading.loaded([entry.spec], replace(Options(), case_instances=True)) if p.all(Case))
    values = case_values(op, op.all(Case)[0])
    named = {p.name: (p.type, () if isinstance(p, Scalar) else tuple([int(evaluate(e, values)) for e in p.shape]))
             for p in (*op.all(Scalar), *op.buffers.values())}
    inputs = [Tensor(np.zeros(named[n][1], numpy_dtype(named[n][0]))) for n in entry.inputs]
    found = apply(name, *inputs, **{a.name: json.loads(a.value) for a in op.all(Attribute)})
    results = [y for y in (found if isinstance(found, tuple) else (found,)) if is_float(y._ref.dtype)]
    wanted = [x for x in inputs if is_float(x._ref.dtype)]
    for y in results if wanted else ():
        made = gradients(y.sum() if y.ndim else y, wanted)
        assert [(g.shape, g.dtype) for g in made] == [(x.shape, x.dtype) for x in wanted]
        refs = [g._ref for g in made]
        calls, leaves = leaves_of(refs)
        assembled(refs, calls, leaves)


@pytest.mark.parametrize("family", [pytest.param(f, marks=() if f in BY_DAY else pytest.mark.nightly) for f in FAMILIES])
def test_all_operators_have_gradients_or_say_why_not(family: str) -> None:
    refused = {}
    for entry in library.entries():
        if entry.family == family:
            try:
                graph_of(entry.name)
            except CatenError as problem:
                refused[entry.name] = problem.diagnostics[0].code
    assert set(refused.values()) <= {"E676"}, refused


def test_the_gradient_of_slogdet() -> None:
    """Its results are numbers for a matrix, and its gradient reads only one of their gradients."""
    x = np.array([[1.0, 2.0], [3.0, 5.0]])
    for given in (x, np.stack([x, x.T])):
        matrix = Tensor(given)
        (found,) = gradients(matrix.slogdet()[1].sum(), [matrix])
        np.testing.assert_allclose(found.numpy(), np.linalg.inv(given).swapaxes(-1, -2), rtol=1e-12)


def test_the_gradient_of_a_number_is_read_by_loops() -> None:
    """That of det is a nest that reads the determinant, and what its gradient is multiplied by."""
    given = np.array([[1.0, 2.0], [3.0, 5.0]])
    matrix = Tensor(given)
    d = matrix.det()
    (found,) = gradients(d * d, [matrix])
    np.testing.assert_allclose(found.numpy(), 2 * np.linalg.det(given) ** 2 * np.linalg.inv(given).T, rtol=1e-12)
