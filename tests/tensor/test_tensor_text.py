"""What the reader and the verifier say of a (tensor …) text that a person has written."""
from __future__ import annotations

import pytest

from caten.core.program import resolve
from caten.core.text import read
from caten.errors import CatenError
from caten.tensor.tensor_verifier import verify


@pytest.mark.parametrize(("value", "message"), [
    ("(compute f32 ((i (size N))) 1.0)", "E212: .*the axis i does not range over numbers"),
    ("(compute f32 ((i N)) (size N))", "E212: .*'expr' holds"),
    ("(reduce nothing ((i N)) ((p N)) add true 1.0)", "E471: .*declared nothing"),
])
def test_a_value_that_is_none_is_refused(value: str, message: str) -> None:
    with pytest.raises(CatenError, match=message):
        verify(resolve(read(f"(tensor T (size N) (buffer Y f32 (N) (0) out) (define v {value}))")[0]))
