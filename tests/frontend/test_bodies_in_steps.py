"""Bodies over whole arrays in steps: operators with loops, and the values between them."""
from __future__ import annotations

from caten.frontend.bodies_in_steps import Step, steps_of
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.tensor.values import Nest

HEAD = '[composite]\nname = "F"\ninputs = ["A{double}[N N]", "x{double}[N M]", "s{double}[]"]\noutputs = ["y{double}[N M]"]\n\n'


def steps(body: str) -> tuple[Step, ...]:
    return steps_of(SpecText("f.toml", f"{HEAD}[composite.implementation]\nlang = \"python\"\ncode = '''\n{body}\n'''\n", "toml"), Options())


def test_the_values_before_between_and_behind_calls_are_steps() -> None:
    found = steps("w = triangular_solve(A.mT, s * x)\nreturn solve(A, w + x) - w")
    assert [s.operator for s in found] == ["", "triangular_solve", "", "solve", "", ""]
    first, triangular, second, solved, last, named = found
    assert (set(first.takes), set(triangular.takes)) == ({"A", "x", "s"}, set(first.gives))
    assert first.program is not None
    assert [o.value for o in first.program.values.outputs] == list(first.gives)        # type: ignore[union-attr]
    assert set(second.takes) == {"x", *triangular.gives}
    assert solved.takes == ("A", *second.gives)
    assert set(last.takes) == {*triangular.gives, *solved.gives}
    assert (named.takes, named.gives, named.program) == (last.gives, ("y",), None)
    assert not any(isinstance(d.value, Nest) for s in found if s.program for d in s.program.values.definitions)      # type: ignore[union-attr]


def test_what_an_operator_takes_and_gives_as_it_is_needs_no_step() -> None:
    solved, named = steps("return solve(A, x)")
    assert (solved.operator, solved.takes) == ("solve", ("A", "x"))
    assert (named.takes, named.gives) == (solved.gives, ("y",))


def test_attributes_are_those_of_the_instance() -> None:
    _, solved, _ = steps("return triangular_solve(A.mT, x, lower=False)")
    assert dict(solved.instance.attributes)["lower"] is False      # type: ignore[union-attr]


def test_bodies_without_such_calls_have_no_steps() -> None:
    assert steps("return np.exp(A @ x) * s") == ()
    assert steps("y = np.zeros_like(x)\nw = solve(A, x)\nfor i in range(N):\n    y[i, 0] = w[i, 0]\nreturn y") == ()


def test_a_step_has_the_arrays_that_say_how_long_its_axes_are() -> None:
    first, *_ = steps("return solve(A, np.ones((N, M)))")
    assert first.takes == ("A", "x")
