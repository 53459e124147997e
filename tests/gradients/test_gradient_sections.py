"""Gradients that a spec gives in [gradient]."""
from __future__ import annotations

from pathlib import Path

import pytest

import caten
from caten.cli.boundary import guarded
from caten.frontend import operator_library as library
from caten.options import Options

SPEC = """[composite]
name = "Running"
attributes = ["factor = 0.5"]
inputs = ["x{float}[N]"]
outputs = ["y{float}[N]"]

[composite.implementation]
lang = "python"
code = '''
y[0] = x[0]
for i in range(1, N):
    y[i] = factor * y[i - 1] + x[i] * x[i]
'''

[composite.gradient]
lang = "python"
code = '''
g = np.empty_like(x)
carried = grad_y[N - 1]
for i in range(N - 1):
    g[N - 1 - i] = carried * 2 * x[N - 1 - i]
    carried = grad_y[N - 2 - i] + factor * carried
g[0] = carried
return g
'''

[composite.test]
requirements = ["N > 0"]

[[composite.test.case]]
name = "ten"
sizes = { N = 10 }

[[composite.test.case]]
name = "one"
sizes = { N = 1 }
"""


def test_a_body_of_the_gradient_is_used() -> None:
    found = caten.test(SPEC, grad=True)
    assert found.passed, found.files[0]
    assert len(found.files[0].cases) == 2


def test_a_wrong_body_is_found() -> None:
    found = caten.test(SPEC.replace("carried * 2 * x", "carried * 3 * x"), grad=True)
    assert [c.status for c in found.files[0].cases] == ["wrong", "ok"]


STEPS = """code = '''
g = np.empty_like(x)
carried = grad_y[N - 1]"""
IN_STEPS = SPEC.replace(STEPS, f"""steps = '''
d = linear_recurrence(np.full_like(x, factor), grad_y, reverse=True)
return np.where(np.arange(N) == 0, d, d * 2 * x)
'''
{STEPS}""")


def test_a_second_body_in_steps_is_compared_too() -> None:
    assert "steps" in IN_STEPS
    found = caten.test(IN_STEPS, grad=True)
    assert found.passed, found.files[0]
    assert [[o.name for o in c.outputs] for c in found.files[0].cases] == [["grad_x", "grad_x"]] * 2
    found = caten.test(IN_STEPS.replace("d * 2 * x", "d * 3 * x"), grad=True)
    assert [c.status for c in found.files[0].cases] == ["wrong", "ok"]


def test_an_error_in_the_body_has_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("running.toml").write_text(SPEC.replace("np.empty_like(x)", "np.emty_like(x)"))
    assert guarded(["test", "running.toml", "--grad"]) == 1
    said = capsys.readouterr().err
    line = SPEC.split("\n").index("g = np.empty_like(x)") + 1
    assert f"running.toml:{line}:5: error" in said
    assert "did you mean 'empty_like'?" in said


def test_the_section_changes_no_kernel() -> None:
    from caten.frontend.spec import SpecText
    from caten.frontend.structure import structure
    from caten.loading import load_programs
    both = [load_programs(SpecText("s.toml", text, "toml"), Options())[0] for text in (SPEC, SPEC.replace("* 2 *", "* 3 *"))]
    assert structure(both[0]).tokens == structure(both[1]).tokens          # type: ignore[arg-type]


BY_HAND = [e for e in library.entries() if "gradient" in e.table]
MANY = ("cholesky", "slogdet", "lgamma", "solve", "scatter", "csr_matvec", "topk")


@pytest.mark.slice(4)
@pytest.mark.parametrize("name", [pytest.param(e.name, marks=() if e.name in MANY else pytest.mark.nightly) for e in BY_HAND])
def test_the_gradients_by_hand_of_the_library(name: str, nightly: bool) -> None:
    entry = library.entry_of(name)
    cases = [c["name"] for c in entry.table["test"]["case"]]
    found = caten.test(entry.spec.text, grad=True, only=cases, opt=2 if nightly else 1)
    assert any(c.status == "ok" for c in found.files[0].cases), found.files[0]
    assert all(c.passed or c.status == "vacuous" or "the bits of shorter numbers" in c.note for c in found.files[0].cases), found.files[0].cases
