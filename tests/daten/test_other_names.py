"""What is said about names of other libraries."""
from __future__ import annotations

import re
from typing import Any

import pytest

import daten
from caten.frontend import operator_library
from daten import Tensor, nn, optim, other_names

TABLES: dict[str, dict[str, str]] = {name: getattr(other_names, name) for name in (
    "METHODS", "FUNCTIONS", "LAYERS", "MODULES", "OPTIMIZERS")}
HOMES: dict[str, Any] = {"METHODS": Tensor([1.0]), "FUNCTIONS": daten, "LAYERS": nn, "MODULES": nn.Linear(2, 2), "OPTIMIZERS": optim}


@pytest.mark.parametrize("table", TABLES)
def test_a_name_that_has_a_hint_is_none_of_ours(table: str) -> None:
    for name, said in TABLES[table].items():
        if (table, name) == ("FUNCTIONS", "tensor"):                # once it is imported, a module of ours
            continue
        with pytest.raises(AttributeError, match=re.escape(said)):
            getattr(HOMES[table], name)


def test_what_hints_name_is_there() -> None:
    text = " ".join([said for table in TABLES.values() for said in table.values()])
    methods = set(re.findall(r"\bx\.([a-zA-Z_]\w*)", text))
    assert len(methods) > 30
    for name in methods:
        assert hasattr(Tensor, name) or operator_library.find(name) or name in ("requires_grad", "grad"), name
    for path in re.findall(r"\bdaten(?:\.[a-zA-Z_]+)+", text):
        found: Any = daten
        for part in path.split(".")[1:]:
            __import__(f"daten.{part}") if part in ("weights", "array_api") else None
            found = getattr(found, part)


@pytest.mark.parametrize(("home", "name", "message"), [
    (daten, "argmax", "np.argmax takes tensors"), (daten, "sigmoid", r"operators are methods: x.sigmoid\(\)"), (daten, "pmap", "no attribute 'pmap'$"),
    (nn, "AvgPool2d", r"lambda x: x.avg_pool2d\(kernel=2\)"), (Tensor([1.0]), "cuda", "leave it out: tensors are .* on the CPU"),
    (nn.Linear(1, 1), "double", r"'Linear' object has no attribute 'double': module.to\(\"float64\"\) converts"),
    (nn.Linear(1, 1), "widht", "'Linear' object has no attribute 'widht'$"), (optim, "clip_grad_norm_", r"clip_norm\(parameters, 1.0\) between")])
def test_what_is_written_instead(home: Any, name: str, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        getattr(home, name)
