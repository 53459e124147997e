"""State dicts that do not fit, and modules that share or hold each other."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daten import nn, optim


class Tied(nn.Module):
    """Layers with one weight, in lists and dicts, of which one knows the whole."""

    def __init__(self) -> None:
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.more = [self.first, {"again": self.second}]
        self.second.whole = self                             # type: ignore[attr-defined]

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x))


def test_modules_and_tensors_are_there_once() -> None:
    net = Tied()
    assert [name for name, _ in net.named_tensors()] == ["first.weight", "first.bias", "second.bias"]
    assert len(net.parameters()) == 3
    assert list(net.modules()) == [net, net.first, net.second]
    assert list(net.second.modules()) == [net.second, net, net.first]
    assert not net.eval().second.training


WRONG = [({"first.bias": None}, "lacks first.bias"), ({"first.bias": None, "1.bias": np.zeros(4)}, "lacks first.bias, and has 1.bias, which the module has not"), ({"other": np.zeros(1)}, "has no other"), ({"first.bias": np.zeros((4, 5))}, r"shape \(4,\), not \(4, 5\)"),
         ({"first.bias": 1.0}, r"shape \(4,\), not \(\)"), ({"second.bias": np.array(["x"] * 4)}, "of type float32, not <U1"),
         ({"second.bias": np.full(4, 1j)}, "of type float32, not complex128"), ({"second.bias": [None] * 4}, "of type float32, not object")]


def refused(owner: nn.Module | optim.Optimizer, change: dict[str, Any], message: str) -> dict[str, Any]:
    """Give it another state with such a change, where None leaves a name out. Its own state, which is still that of before."""
    before = owner.state_dict()
    state = {name: array + 1 for name, array in before.items()} | change
    with pytest.raises(ValueError, match=message):
        owner.load_state_dict({name: value for name, value in state.items() if value is not None})
    for name, array in owner.state_dict().items():
        np.testing.assert_array_equal(array, before[name])
    return before


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_a_state_that_does_not_fit_changes_nothing(change: dict[str, Any], message: str) -> None:
    net = Tied()
    before = refused(net, change, message)
    net.load_state_dict({name: (array + 1).tolist() for name, array in before.items()})
    assert net.state_dict()["first.bias"].tolist() == (before["first.bias"] + 1).tolist()


@pytest.mark.parametrize(("change", "message"), [
    ({"steps": None}, "of other parameters"), ({"steps": -3}, "an integer from 0 on, not -3"), ({"steps": 2.5}, "not 2.5"), ({"steps": "a"}, "not 'a'"),
    ({"steps": np.array([1, 2])}, "an integer from 0 on"), ({"0.0": [1.0]}, r"of other parameters: 0.0 has the shape \(4, 4\), not \(1,\)"),
    ({"2.1": np.full(4, 1j)}, "2.1 has elements of type float32, not complex128"), ({"3.0": np.zeros(4)}, "of other parameters")])
def test_a_state_of_an_optimizer_that_does_not_fit_changes_nothing(change: dict[str, Any], message: str) -> None:
    refused(optim.Adam(Tied().parameters()), change, message)
