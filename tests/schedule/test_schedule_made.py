"""What steps make: the loops and arrays that they name are those that are new to the program, each by what it stands
for."""
from __future__ import annotations

from pathlib import Path

import pytest
from schedule_nets import program
from test_schedule_goldens import FOLDER, cases

from caten.loop.statements import For
from caten.schedule import script, step_results
from caten.schedule.script import parse_schedule
from caten.schedule.step_results import Nest, Specialized, Split, Staged, Unguarded
from made_checks import taken

NEST = "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref X i j) (aref A i j))))"
SUM = "(for i 0 M 1 serial (for j 0 16 1 serial (for p 0 K 1 serial (incf (aref C i p) (* (aref X i j) (aref B j p))))))"


@pytest.mark.slice(2)
@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.txt")), ids=lambda f: f.stem)
def test_every_step_of_the_goldens_tells_all_that_it_made(file: Path) -> None:
    for steps, text, _ in cases(file).values():
        node = program(text)
        for step in parse_schedule(f"(schedule {steps})").steps:
            node = taken(node, step)


def made_by(text: str, *steps: tuple[object, ...]) -> object:
    """What the last of these steps made."""
    node = program(text)
    for step in steps[:-1]:
        node = script.apply(node, [step])
    return script.take(node, steps[-1])[1]


def test_a_split_names_what_is_left_over_by_the_loops_that_it_is_a_copy_of() -> None:
    assert made_by(NEST, ("split", "i", 4)) == Split("io", "ii", "it", {"j": "jt"})
    assert made_by(NEST, ("split", "i", 4, "min")) == Split("io", "ii")
    assert made_by(NEST, ("split", "i", 4, "pad", "rows", "row")) == Split("rows", "row")


def test_a_copy_leaves_out_what_never_runs_in_it() -> None:
    text = "(for i 0 M 1 serial (if (= N 4) ((for j 0 N 1 serial (setf (aref X i j) x))) ((for k 0 N 1 serial (setf (aref X i k) 1.0)))))"
    assert made_by(text, ("specialize", "i", ("=", "N", "4"))) == Specialized({"i": "is", "j": "js"})
    assert made_by(text, ("specialize", "i", ("=", "N", "5"))) == Specialized({"i": "is", "k": "ks"})


@pytest.mark.parametrize("loop", ["0 M 1", "(- M 1) -1 -1", "M 0 -2"])
def test_a_copy_for_some_calls_leaves_the_others_the_original(loop: str) -> None:
    """Unless these run no iteration, in whichever direction the loop counts."""
    node = program(f"(for i {loop} serial (setf (aref C i 0) 1.0))")
    for cond, originals in ((("=", ("mod", "N", "4"), "0"), 1), (("<=", "1", "M"), 0)):
        made = script.apply(node, [("specialize", "i", cond)])
        assert [n.name for n in made.unique() if isinstance(n, For)].count("i") == originals


def test_the_nests_of_a_tile_are_told_by_their_axes_whole_tiles_and_edges_apart() -> None:
    told = made_by(SUM, ("reorder", "i", "p", "j"), ("split", "p", 8, "pad"), ("reorder", "i", "po", "j", "pi"),
                   ("stage", "j", "C", "partial", "register", "pi"))
    assert told == Staged("C_part", "C_out", (
        Nest("begin", False, {"pi": "pi_z"}), Nest("store", False, {"pi": "pi_w"}), Nest("lay", False, {"pi": "pi_s"}),
        Nest("store", True, {"pi": "pi_we"})))
    assert isinstance(told, Staged)
    assert told.over("pi") == ("pi_z", "pi_w", "pi_s", "pi_we")
    assert told.usual("pi") == ("pi_z", "pi_w", "pi_s")
    assert told.usual("pi", "store") == ("pi_w",)
    assert told.over("j") == ()


def test_where_every_tile_may_go_beyond_the_edge_that_is_the_usual_one() -> None:
    nests = (Nest("fill", True, {"i": "i_re"}), Nest("store", False, {"i": "i_w"}), Nest("store", True, {"i": "i_we"}))
    assert Staged("T", "", nests).usual("i") == ("i_re", "i_w")


def test_integers_are_not_looked_at() -> None:
    assert Unguarded().loops == Unguarded().arrays == ()


def test_what_makes_nothing_says_so() -> None:
    assert made_by(NEST, ("reorder", "j", "i")) is step_results.NOTHING
    assert made_by(NEST, ("parallel", "i")) is step_results.NOTHING
