"""Rewrites that are right, and that the verifier sees to be right; steps after which it cannot are refused with the
reason."""
from __future__ import annotations

import pytest
from schedule_nets import PARAMS, arguments, assert_same, assert_sound, kernel_text, program

from caten.core.expr import Op, Var, index
from caten.errors import CatenError
from caten.loop.context import Context
from caten.loop.verifier import verify
from caten.schedule import script, user_steps
from caten.semantics.interpret import run

CUBES = """(size M) (size N) (buffer P f32 (M N M) (0 1 2) in) (buffer Y f32 (M N M) (0 1 2) inout) (buffer Z f32 (5 N) (0 1) in)
 (ensure 1 (<= M (floordiv (floordiv 1152921504606846976 (max M 1)) (max N 1))))"""

SUMS = "(for i 0 M 1 serial (for p 0 N 1 serial (for j 0 M 1 serial (setf (aref Y i p j) 1.0))))"


@pytest.mark.parametrize(("statements", "steps"), [
    ("(for i 0 M 1 serial (for j 0 M 1 serial (for p 0 N 1 serial (setf (aref Y i p (- (- M j) 1)) (aref P i p j)))))",
     "(fuse i j)"),
    ("(for i 0 M 1 serial (for p 0 N 1 serial (for j 0 M 1 serial (setf (aref Y i p j) (aref Z (mod p 5) p)))))",
     "(fuse p j)"),
    ("(for i 0 M 1 serial (for p 0 N 1 serial (for j 0 M 1 serial (setf (aref Y i p j) (aref P (min (- M 1) 3) p j)))))", "(fuse i p)"),
    ("(for i 0 M 1 serial (for p 0 N 1 serial (for j 0 M 1 serial (setf (aref Y i p j) 1.0))))",
     "(fuse i p) (split ip 2)"),
    ("(for i 0 M 1 serial (local T f32 (N M) scratch) (for p 0 N 1 serial (for j 0 M 1 serial (setf (aref T p j) (aref P i p j))))"
     "(for q 0 N 1 serial (for k 0 M 1 serial (setf (aref Y i q k) (aref T q k)))))", "(flatten T)"),
    ("(for i 0 M 1 serial (local T f32 (N M) scratch) (for p 0 N 1 serial (for j 0 M 1 serial (setf (aref T p j) (aref P i p j))))"
     "(for q 0 N 1 serial (for k 0 M 1 serial (setf (aref Y i q k) (aref T q k)))))", "(split p 2) (flatten T)"),
    (SUMS, "(fuse p j) (split i 2)"),
    (SUMS, "(fuse p j) (pad i 5)"),
], ids=["turned around", "a remainder of a quotient", "a factor that is not zero", "a quotient of tiles", "flat",
        "flat tiles", "around tiles", "around more than there are"])
def test_products_of_sizes_are_seen_to_stay_inside(statements: str, steps: str) -> None:
    before = program(statements, CUBES)
    after = script.apply(before, script.parse_schedule(f"(schedule {steps})").steps)
    try:
        assert_sound(after)
    except CatenError as unseen:
        pytest.fail(f"{unseen}")
    assert_same(before, after, ((0, 0), (1, 1), (3, 4), (4, 3), (2, 7)))


def test_the_remainder_of_what_may_not_fit_is_no_other_number() -> None:
    """⌊x/2⌋ of an x that may be beyond 64 bits is an atom of its own: x mod 2 is not x - 2·(x mod 2)."""
    x = Var("x", "i64")
    known = Context(ranges={"x": (0, 1 << 70)})
    rest = Op("mod", (x, index(2)))
    assert not known.proves(Op("eq", (rest, x - rest * 2)))
    assert known.linear(rest) != known.linear(x - rest * 2)


def test_an_array_that_a_kernel_asks_for_is_shared_by_separate_kernels() -> None:
    before = program("(local G f32 (N) scratch) (for i 0 N 1 serial (setf (aref G i) x)) (for j 0 N 1 serial (prefetch (aref G j)) (setf (aref v j) x))")
    after = script.apply(before, [("separate", "t")])
    assert_sound(after)
    assert kernel_text(after).splitlines()[0] == "(local G f32 (N) global)"


@pytest.mark.parametrize(("statements", "steps", "message"), [
    ("(for j 0 N 1 serial (setf (aref v j) (aref u j)))", "(stage j u read scratch j j)",
     "E515: stage j u: 'j' is named twice"),
    ("(for j 0 32 1 serial (if (< j N) ((incf (aref v j) (aref u j)))))",
     "(bind j block) (stage j v accumulate scratch)",
     "E515: stage j v: 'j' is bound to the block"),
    ("(for i 0 40 1 serial (for j 0 20 1 serial (if (< (+ i j) N) ((setf (aref v (+ i j)) x)))))",
     "(unroll j full) (unroll i full)", "E512: unroll i: 40 copies of its body are too much text"),
])
def test_what_is_not_right_is_refused(statements: str, steps: str, message: str) -> None:
    with pytest.raises(CatenError, match=message) as caught:
        user_steps.apply_asked(program(statements), script.parse_schedule(f"(schedule {steps})").steps)
    assert "report" not in str(caught.value)


def test_the_last_of_the_steps_is_blamed_that_made_it_so() -> None:
    """Steps are verified one by one where the end is refused, or where that is asked for; what was wrong before them is
    no step's fault."""
    steps = script.parse_schedule("(schedule (split i 2 min) (fuse ii p) (split iip 2) (split io 2))").steps
    before = program(SUMS, CUBES)
    for every in (False, True):
        with pytest.raises(script.StepRefused, match="is not shown to be inside") as caught:
            user_steps.apply_asked(before, steps, every)
        assert (caught.value.step, caught.value.diagnostics[0].code) == (("split", "iip", "2"), "E538")
        assert "report" not in str(caught.value)
    wrong = program("(for j 0 M 1 serial (setf (aref v j) x))")
    with pytest.raises(CatenError, match="E483"):
        verify(user_steps.apply_asked(wrong, [("split", "j", "2")]))


def test_the_same_values_after_the_last_of_them() -> None:
    """What a schedule of several of these steps makes is run, too."""
    before = program("(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref X i j) (aref A i (- (- N j) 1)))))", PARAMS)
    after = user_steps.apply_asked(before,
                                   script.parse_schedule("(schedule (fuse i j) (split ij 4) (parallel ijo))").steps,
                                   verify=True)
    given = [arguments(node, {"M": 3, "N": 5, "K": 1}, 2) for node in (before, after)]
    for node, values in zip((before, after), given, strict=True):
        assert run(node, values) == 0
    assert (given[0]["X"] == given[1]["X"]).all()
