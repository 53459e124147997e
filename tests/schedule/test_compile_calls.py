"""What scheduling costs, counted in calls of functions, which no neighbour on the machine changes: a program of many
nests costs what its nests cost by themselves, and one whose axes have the same size twice what one of different sizes
costs."""
from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable, Sequence

import pytest

from caten import driver, loading
from caten.frontend.spec_files import SpecText
from caten.options import Options

OPTIONS = Options(runtime="gcc", config=(("MARCH", "x86-64-v3"),))
Nest = tuple[list[str], str, str]              # the inputs, the output, the statements


def maps(n: int) -> Nest:
    return [f"X{n}{{float}}[N]"], f"Y{n}{{float}}[N]", f"(dotimes (i{n} N) (setf (aref Y{n} i{n}) (* {n}.5 (aref X{n} i{n}))))"


def sums_of_rows(n: int) -> Nest:
    return [f"A{n}{{float}}[N M]"], f"Y{n}{{float}}[N]", (
        f"(dotimes (i{n} N) (setf (aref Y{n} i{n}) 0) (dotimes (j{n} M) (incf (aref Y{n} i{n}) (aref A{n} i{n} j{n}))))")


def sums_of_one_array(n: int) -> Nest:
    return ["A{float}[N M]"], f"Y{n}{{float}}[N]", (
        f"(dotimes (i{n} N) (setf (aref Y{n} i{n}) 0) (dotimes (j{n} M) (incf (aref Y{n} i{n}) (* {n}.5 (aref A i{n} j{n})))))")


def sums_across(n: int) -> Nest:
    return [f"A{n}{{float}}[N M]"], f"Y{n}{{float}}[M]", (
        f"(dotimes (i{n} M) (setf (aref Y{n} i{n}) 0)) (dotimes (j{n} N) (dotimes (i{n} M) (incf (aref Y{n} i{n}) (aref A{n} j{n} i{n}))))")


def products(n: int) -> Nest:
    return [f"A{n}{{float}}[N K]", f"B{n}{{float}}[K M]"], f"Y{n}{{float}}[N M]", (
        f"(dotimes (i{n} N) (dotimes (j{n} M) (setf (aref Y{n} i{n} j{n}) 0)"
        f" (dotimes (p{n} K) (incf (aref Y{n} i{n} j{n}) (* (aref A{n} i{n} p{n}) (aref B{n} p{n} j{n}))))))")


def program(nests: Sequence[Nest]) -> str:
    inputs = ", ".join([f'"{name}"' for name in dict.fromkeys([name for nest in nests for name in nest[0]])])
    outputs = ", ".join([f'"{nest[1]}"' for nest in nests])
    return (f'[composite]\nname = "Many"\ninputs = [{inputs}]\noutputs = [{outputs}]\n'
            f'[implementation]\ncode = """{" ".join([nest[2] for nest in nests])}"""\n')


def calls(text: str) -> int:
    """How many calls of functions it takes from the spec to the C text."""
    profile = cProfile.Profile()
    profile.enable()
    (op,) = loading.load_programs(SpecText("many", text), OPTIONS)
    driver.render([driver.advance(op, "loop", OPTIONS)], OPTIONS)  # type: ignore[list-item]   # of the level that is asked for
    profile.disable()
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]   # which typeshed does not know


@pytest.mark.slice(2)
@pytest.mark.parametrize("family", [maps, products, sums_of_one_array, sums_across, sums_of_rows],
                         ids=lambda f: f.__name__)
@pytest.mark.slow
def test_many_nests_cost_what_they_cost_by_themselves(family: Callable[[int], Nest], nightly: bool) -> None:
    count = (100 if nightly else 2) if family is products else 300 if nightly else 10
    calls(program([family(9000)]))                                # what only the first one needs
    alone = calls(program([family(9001)]))
    assert calls(program([family(n) for n in range(count)])) < 1.2 * count * alone


ALIKE = [("[C C N]", "[B C N]"), ("[C C]", "[B C]"), ("[C C C]", "[A B C]"), ("[C C 4]", "[B C 4]"),
         ("[C N C]", "[C N B]"), ("[C C N N]", "[A B C N]")]


def through(shape: str, count: int) -> list[Nest]:
    """Nests one after the other, each of which reads what the one before set."""
    extents = shape[1:-1].split()
    arrays = [f"X{shape}", *[f"Y{n}{shape}" for n in range(count)]]
    nests = []
    for n in range(count):
        axes = [f"i{n}{axis}" for axis in range(len(extents))]
        loops = "".join([f"(dotimes ({axis} {extent}) " for axis, extent in zip(axes, extents, strict=True)])
        at = " ".join(axes)
        store = f"(setf (aref Y{n} {at}) (* (aref {f'Y{n - 1}' if n else 'X'} {at}) {n}.5))"
        nests.append(([f"X{{float}}{shape}"], arrays[n + 1].replace("[", "{float}["), loops + store + ")" * len(axes)))
    return nests


@pytest.mark.slice(2)
@pytest.mark.parametrize(("twice", "once"), ALIKE)
@pytest.mark.slow
def test_an_axis_that_has_the_size_of_another_costs_no_more(twice: str, once: str) -> None:
    calls(program(through("[N]", 2)))
    assert calls(program(through(twice, 4))) < 1.3 * calls(program(through(once, 4)))
