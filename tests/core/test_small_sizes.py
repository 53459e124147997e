"""Sizes for operators that nobody gave sizes: conditions hold, outputs have elements, and where there are none an error says so."""
from __future__ import annotations

import pytest

from caten.core.size_formula import evaluate, formula
from caten.core.small_sizes import small_sizes
from caten.errors import CatenError


def sizes(*conditions: str, names: str = "M K N", outputs: tuple[str, ...] = (), inputs: tuple[str, ...] = (), binds: dict[str, int] | None = None) -> dict[str, int]:
    arguments = [{"name": n, "kind": "size", "shape": []} for n in names.split()]
    arguments += [{"name": f"x{i}", "kind": "tensor", "direction": "in", "shape": [e]} for i, e in enumerate(inputs)]
    arguments += [{"name": f"y{i}", "kind": "tensor", "direction": "out", "shape": [e]} for i, e in enumerate(outputs)]
    found = small_sizes({"op": "F", "arguments": arguments, "conditions": list(conditions), "binds": binds or {}})
    assert all(evaluate(formula(c), found) for c in conditions)
    assert all(evaluate(formula(e), found) > 0 for e in outputs)
    return found


def test_sizes_satisfy_the_conditions_and_differ() -> None:
    assert sizes() == {"M": 5, "K": 7, "N": 6}
    assert sizes("(= K (* 2 M))") == {"M": 5, "N": 7, "K": 10} == sizes("(= (* 2 M) K)")
    assert sizes("(< 10 M)", "(< M K)") == {"M": 12, "K": 16, "N": 5}
    assert sizes("(and (< 10 M) (< M K))")["M"] == 12
    assert sizes(binds={"K": 100})["K"] == 100
    assert sizes("(= M (* 1000 N))")["M"] == 7000


@pytest.mark.parametrize(("names", "conditions", "outputs"), [
    ("N T", [], ["(+ (- N T) 1)"]),
    ("N T", ["(<= T (+ N 1))"], ["(+ (- N T) 1)"]),
    ("H W R S", [], ["(+ (- H R) 1)", "(+ (- W S) 1)"]),
    ("N T L", ["(= N (- (+ L T) 1))", "(> T 0)"], ["L"]),
    ("N T L", ["(and (= (+ N 1) (+ L T)) (> T 0))"], ["L"]),
    ("N", [], ["(- N 9)", "(- 17 N)"]),
    ("N", [], ["(floordiv N 8)"]),
    ("N G", ["(= (mod N G) 0)", "(< 3 G)"], ["(floordiv N G)"]),
    ("H W R S D", ["(<= (* D (- R 1)) H)"], ["(- H (* D (- R 1)))", "(- W (* D (- S 1)))"]),
    ("A B C D E F G H", ["(= A (* B C))", "(= D (+ E F))", "(= G (* 2 H))"], ["(- A 1)", "(- D 9)"]),
])
def test_every_output_has_elements(names: str, conditions: list[str], outputs: list[str]) -> None:
    assert min(sizes(*conditions, names=names, outputs=tuple(outputs)).values()) >= 1


def test_an_input_is_without_elements_only_where_it_must_be() -> None:
    assert sizes(names="N T", inputs=("(- N T)",))["N"] > sizes(names="N T", inputs=("(- N T)",))["T"]
    assert sizes("(= N T)", names="N T", inputs=("(- N T)",), outputs=("N",)) == {"N": 5, "T": 5}


@pytest.mark.parametrize(("conditions", "outputs", "told"), [
    (("(< 1000 M)",), (), r"no small sizes satisfy \(< 1000 M\) and give every output an element"),
    ((), ("(- M M)",), "no small sizes give every output an element"),
    (("(< M K)", "(< K N)", "(< N M)"), (), "no small sizes satisfy"),
])
def test_where_there_are_none_an_error_says_so(conditions: tuple[str, ...], outputs: tuple[str, ...], told: str) -> None:
    with pytest.raises(CatenError, match=f"E667: F: {told}"):
        sizes(*conditions, outputs=outputs)


def test_the_search_ends() -> None:
    with pytest.raises(CatenError, match="E667"):
        sizes("(< 500 (+ A (+ B (+ C (+ D (+ E (+ F G)))))))", "(< (+ A G) 3)", "(< (+ B F) 3)", "(< (+ C E) 3)", "(< D 3)", names="A B C D E F G")
