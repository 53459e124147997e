"""`@frozen` beside the dataclass that it stands for."""
from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any

import pytest

from caten.frozen import frozen


def classes(decorate: Any) -> tuple[type, type, type]:
    @decorate
    class Place:
        line: int
        name: str = "-"
        memo: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    @decorate
    class Deeper(Place):
        column: int = 1

    @decorate
    class Nothing:
        pass
    return Place, Deeper, Nothing


@pytest.mark.parametrize("decorate", [frozen, dataclass(frozen=True)])
def test_it_is_a_value(decorate: Any) -> None:
    place, deeper, nothing = classes(decorate)
    assert place(1, memo={"a": 1}) == place(1)
    assert hash(place(1, memo={"a": 1})) == hash(place(1))
    assert place(1) != place(2)
    assert place(1) != deeper(1)
    assert deeper(1, column=2) != deeper(1)
    assert {place(1), place(1), deeper(1), nothing(), nothing()} == {nothing(), deeper(1), place(1)}
    assert place(1) != 1
    assert repr(deeper(1, "x")).endswith("Deeper(line=1, name='x', column=1)")
    assert repr(nothing()).endswith("Nothing()")
    assert replace(place(1), name="y") == place(1, "y")
    assert asdict(place(1)) == {"line": 1, "name": "-", "memo": {}}
    assert [f.name for f in fields(deeper)] == ["line", "name", "memo", "column"]
    assert deeper.__match_args__ == ("line", "name", "memo", "column")
    assert place(1).memo is not place(1).memo
    for change in (lambda p: setattr(p, "line", 2), lambda p: setattr(p, "other", 2), lambda p: delattr(p, "line")):
        some = deeper(1)
        with pytest.raises(FrozenInstanceError):
            change(some)
        assert some == deeper(1)


def test_methods_of_its_own_stay() -> None:
    @frozen
    class Spoken:
        word: str

        def __repr__(self) -> str:
            return self.word
    assert repr(Spoken("yes")) == "yes"
    assert Spoken("yes") == Spoken("yes")


@pytest.mark.parametrize("decorate", [frozen, dataclass(frozen=True)])
def test_it_is_made_as_its_signature_says(decorate: Any) -> None:
    place, deeper, nothing = classes(decorate)
    assert list(inspect.signature(deeper).parameters) == ["line", "name", "memo", "column"]
    assert inspect.signature(deeper).parameters["column"].default == 1
    assert not inspect.signature(nothing).parameters
    assert deeper(1, "x", {}, 2) == deeper(column=2, memo={}, name="x", line=1) == deeper(1, column=2, name="x")
    for wrong in (lambda: place(), lambda: place(1, line=1), lambda: place(1, "", {}, 3), lambda: place(1, other=2), lambda: nothing(1)):
        with pytest.raises(TypeError):
            wrong()
