"""A nest of a library operator that is inlined twice over the same arrays is one value; over others, it is another."""
from __future__ import annotations

import pytest

from caten import driver, loading
from caten.frontend.spec_files import SpecText
from caten.loop.statements import For
from caten.options import Options
from caten.tensor.values import Nest, TensorProgram

SPEC = """[composite]
name = "Sorted"
inputs = ["x{double}[N]", "w{double}[N]", "z{double}[M]"]
outputs = ["y{double}[]"]
[implementation]
lang = "python"
code = '''
return BODY
'''
"""


@pytest.mark.parametrize(("body", "count"), [
    ("np.percentile(x, 25) + w[0] + z[0]", 1),
    ("np.percentile(x, [25, 50, 75]).sum() + w[0] + z[0]", 1),
    ("np.median(x) - np.quantile(x, 0.1) + np.sort(x)[0] + w[0] + z[0]", 1),
    ("np.percentile(x, [25, 75]).sum() + np.percentile(w, 25) + z[0]", 2),             # another array
    ("np.percentile(x, 25) + np.percentile(z, 25) + w[0]", 2),                         # and another size
    ("np.percentile(x, 25) + np.percentile(2 * x, 25) + w[0] + z[0]", 2)])
def test_quantiles_of_one_array_share_its_sort(body: str, count: int) -> None:
    options = Options()
    (program,) = loading.load_programs(SpecText("sorted.toml", SPEC.replace("BODY", body), "toml"), options)
    values = driver.advance(program, "tensor", options)
    assert isinstance(values, TensorProgram)
    nests = [n for d in values.definitions if isinstance(d.value, Nest) for n in d.value.unique()]
    assert len([n for n in nests if isinstance(n, For) and n.name.startswith("digit")]) == count
