"""Short rows, windows and gathers: what planners make of loops along which vectors do not pay."""
from __future__ import annotations

import pytest
from schedule_nets import assert_same, program

from caten.core.program import Schedule
from caten.core.text import show
from caten.errors import CatenError
from caten.loop.statements import Fold, Lanes, Local, LoopProgram, Vref
from caten.schedule import autoscheduler, script
from caten.schedule.analysis.loop_queries import loops_in
from caten.schedule.planning import Planning

AVX2 = '(opt 2) (target "clang" (machine x86_64_v3 32 16 (32768 524288) true))'
AVX512 = '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true))'
NEON = '(opt 2) (target "clang" (machine aarch64 16 32 (65536 524288) false))'
SIZES = ((0, 5), (1, 1), (3, 4), (17, 5), (40, 33))


def scheduled(body: str, params: str, machine: str = AVX2) -> tuple[LoopProgram, LoopProgram]:
    before = program(body, params, machine)
    return before, autoscheduler.schedule(before, Planning(verify=True))


def steps(node: LoopProgram) -> list[str]:
    fact = node.first(Schedule)
    assert fact is not None
    return [show(step) if not isinstance(step, tuple) else " ".join(map(str, step)) for step in fact.steps]


def vectors(node: LoopProgram) -> list[Vref]:
    return [n for kernel in node.kernels for n in kernel.unique() if isinstance(n, Vref)]


@pytest.mark.parametrize("columns", ["N", "3", "(* 3 N)"])
def test_a_map_of_dense_arrays_is_one_loop(columns: str) -> None:
    before, after = scheduled(f"(for i 0 M 1 serial (for j 0 {columns} 1 serial (setf (aref B i j) (* 2.0 (aref A i j)))))",
                              f"(size M) (size N) (buffer A f32 (M {columns}) (0 1) in) (buffer B f32 (M {columns}) (0 1) inout)")
    assert [s for s in steps(after) if s.split()[0] in ("fuse", "flatten")] == ["fuse i j", "flatten B 0",
                                                                                "flatten A 0"]
    assert all(v.count == 8 and len(v.index) == 1 for v in vectors(after))
    assert vectors(after)
    assert_same(before, after, SIZES)


@pytest.mark.parametrize(("a", "b"), [
    ("(M N) (0 1) in", "(M N) (1 0) inout"), ("(M (+ N 1)) (0 1) in", "(M N) (0 1) inout"),
                                      ("(M N) (0 1) in q 1", "(M N) (0 1) inout"),
    ("(N) (0) in", "(M N) (0 1) inout")])
def test_rows_that_do_not_follow_each_other_stay(a: str, b: str) -> None:
    at = "j" if a.startswith("(N)") else "i j"
    before = program(f"(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref B i j) (* 2.0 (aref A {at})))))",
                     f"(size M) (size N) {'(scalar q i64)' if ' q ' in a else ''} (buffer A f32 {a}) (buffer B f32 {b})", AVX2)
    assert not [s for s in steps(autoscheduler.schedule(before)) if s.startswith(("fuse", "flatten"))]


@pytest.mark.parametrize(("row", "merged"), [("N", []), ("3", ["flatten B 0", "flatten A 0"])])
def test_outer_axes_become_one_beside_a_short_row(row: str, merged: list[str]) -> None:
    before, after = scheduled(f"(for i 0 M 1 serial (for j 0 N 1 serial (for k 0 {row} 1 serial (setf (aref B i j k) (+ (aref b k) (aref A i j k))))))",
                              f"(size M) (size N) (buffer A f32 (M N {row}) (0 1 2) in) (buffer b f32 ({row}) (0) in) (buffer B f32 (M N {row}) (0 1 2) inout)")
    assert [s for s in steps(after) if s.startswith("flatten")] == merged
    assert_same(before, after, SIZES)


def test_a_product_of_sizes_that_bounds_itself_is_not_asked_about_without_end() -> None:
    """M · N is bounded by M · M · N, and M is above 0 where a loop up to ⌊M · N / 16⌋ runs, if that is not more than M
    · N."""
    before = program("(for i 0 M 1 serial (for j 0 M 1 serial (for k 0 N 1 serial (setf (aref B i j k) (aref A i j k)))))",
                     "(size M) (size N) (buffer A f32 (M M N) (0 1 2) in) (buffer B f32 (M M N) (0 1 2) inout)", AVX2)
    steps = [("fuse", "j", "k"), ("flatten", "A", "1"), ("flatten", "B", "1"), ("split", "jk", "16"), ("parallel", "i"),
             ("split", "jkt", "16", "pad"),
             ("vectorize", "jkti"), ("vectorize", "jki")]
    assert_same(before, script.apply(before, steps, verify=True), SIZES)


def test_an_array_that_another_nest_uses_otherwise_stays() -> None:
    one = "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref B i j) (* 2.0 (aref A i j)))))"
    params = "(size M) (size N) (buffer A f32 (M N) (0 1) in) (buffer B f32 (M N) (0 1) inout) (buffer w f32 (M) (0) inout)"
    before, after = scheduled(one + "(for p 0 M 1 serial (for q 0 N 1 serial (incf (aref w p) (aref B p q))))", params)
    assert not [s for s in steps(after) if s.startswith(("fuse", "flatten"))]
    assert_same(before, after, SIZES)
    before, after = scheduled(one + "(for p 0 M 1 serial (for q 0 N 1 serial (incf (aref B p q) 1.0)))", params)
    assert [s for s in steps(after) if s.startswith("fuse")] == ["fuse i j", "fuse p q"]
    assert_same(before, after, SIZES)


def test_a_caller_array_in_another_order_is_not_flattened() -> None:
    before = program("(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref B i j) 1.0)))",
                     "(size M) (size N) (buffer B f32 (M N) (1 0) inout)", AVX2)
    with pytest.raises(CatenError, match="'B' is not dense in memory with its axes in order"):
        script.apply(before, [("flatten", "B")])


@pytest.mark.parametrize(("value", "machine", "overlaps"), [
    ("(setf (aref B i j) (+ (aref A i j) (aref R j)))", AVX2, True), ("(setf (aref B i j) (+ (aref A i j) (aref R j)))", NEON, True),
    ("(setf (aref B i j) (+ (aref A i j) (aref R j)))", AVX512, False), ("(incf (aref B i j) (* (aref A i j) (aref R j)))", AVX2, False)])
def test_the_last_vector_of_a_row_begins_earlier_where_masked_stores_are_slow(value: str, machine: str, overlaps: bool) -> None:
    """The elements before the tail are computed twice: not where the second time would add to them again."""
    before, after = scheduled(f"(for i 0 M 1 serial (for j 0 N 1 serial {value}))",
                              "(size M) (size N) (buffer A f32 (M N) (0 1) in) (buffer B f32 (M N) (0 1) inout) (buffer R f32 (N) (0) in)", machine)
    assert any(s.endswith(" overlap") for s in steps(after)) == overlaps
    assert not overlaps or all(v.mask is None for v in vectors(after))
    assert_same(before, after, SIZES)


def test_the_terms_of_a_window_are_written_out_and_its_results_are_lanes() -> None:
    before, after = scheduled("""(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref B i j) 0.0)))
      (for p 0 M 1 serial (for q 0 N 1 serial (for a 0 3 1 serial (for b 0 3 1 serial (incf (aref B p q) (aref A (+ p a) (+ q b)))))))""",
                              "(size M) (size N) (buffer A f32 ((+ M 2) (+ N 2)) (0 1) in) (buffer B f32 (M N) (0 1) out)")
    # the first term sets what was zero before
    assert not {"a", "b", "i"} & {loop.name for loop in loops_in(after)}
    assert {v.count for v in vectors(after)} == {8}
    assert [n.space for kernel in after.kernels for n in kernel.walk() if isinstance(n, Local)] == ["register"] * 3      # vectors, the last one, short rows
    assert_same(before, after, SIZES)


def test_sums_of_short_rows_stay_as_written_and_of_what_computes_much_are_lanes() -> None:
    params = "(size M) (buffer A f32 (M 3) (0 1) in) (buffer w f32 (M) (0) inout)"
    text = "(for i 0 M 1 serial (for j 0 3 1 serial (incf (aref w i) {})))"
    before, after = scheduled(text.format("(aref A i j)"), params)
    assert not vectors(after)
    assert_same(before, after, ((0,), (1,), (17,)))
    before, after = scheduled(text.format("(exp (aref A i j))"), params)
    assert {v.count for v in vectors(after)} == {8}
    assert not any(isinstance(n, Fold) for kernel in after.kernels for n in kernel.unique())
    assert_same(before, after, ((0,), (1,), (17,)))


def test_what_is_gathered_is_read_one_by_one_unless_much_is_computed() -> None:
    params = "(size M) (buffer A f32 (M 7) (0 1) in) (buffer w f32 (M) (0) inout)"
    before, after = scheduled("(for i 0 M 1 serial (setf (aref w i) (+ (aref A i 2) (aref A i 5))))", params)
    assert not vectors(after)
    before, after = scheduled("(for i 0 M 1 serial (setf (aref w i) (sin (aref A i 2))))", params)
    assert {v.count for v in vectors(after)} == {8}
    assert_same(before, after, ((0,), (1,), (17,)))


TAKEN = "(aref u (max 0 (min 6 (cast i64 (aref k i {})))))"


@pytest.mark.parametrize(("dtype", "count"), [("f32", 8), ("f64", 4)])
def test_functions_of_what_is_gathered_are_computed_in_vectors(dtype: str, count: int) -> None:
    params = f"(size M) (buffer u {dtype} (7) (0) in) (buffer k i32 (M 3) (0 1) in) (buffer w {dtype} (M) (0) inout)"
    before, after = scheduled(f"(for i 0 M 1 serial (setf (aref w i) (sin {TAKEN.format(2)})))", params)
    assert {n.lanes for kernel in after.kernels for n in kernel.unique() if isinstance(n, Lanes)} == {count}
    assert_same(before, after, ((0,), (1,), (17,)))
    before, after = scheduled(f"(for i 0 M 1 serial (setf (aref w i) {TAKEN.format(2)}))", params)
    assert not [n for kernel in after.kernels for n in kernel.unique() if isinstance(n, Lanes)]


@pytest.mark.parametrize("cond", ["true", "(< (aref A i j) 0.5)", "(< i j)"])
def test_rows_of_functions_of_what_is_gathered_have_vectors_and_masks(cond: str) -> None:
    params = "(size M) (size N) (buffer A f32 (M N) (0 1) in) (buffer k i32 (M N) (0 1) in) (buffer u f32 (7) (0) in) (buffer w f32 (M) (0) inout)"
    taken = TAKEN.format("j")
    body = f"(incf (aref w i) (exp {taken}) max)" if cond == "true" else f"(incf (aref w i) (where {cond} (exp {taken}) 0.0) max)"
    before, after = scheduled(f"(for i 0 M 1 serial (for j 0 N 1 serial {body}))", params)
    assert [n for kernel in after.kernels for n in kernel.unique() if isinstance(n, Lanes)]
    assert_same(before, after, SIZES)


@pytest.mark.parametrize("stored", ["(aref w i)", "(aref s)"])
def test_sums_of_gathered_elements_have_several_accumulators(stored: str) -> None:
    """No vector loads them, and each addition waits for the one before."""
    params = "(size M) (size N) (buffer A f32 (M N) (0 1) in) (buffer k i32 (M N) (0 1) in) (buffer u f32 (7) (0) in) (buffer w f32 (M) (0) inout) (buffer s f32 () () inout)"
    before, after = scheduled(f"(for i 0 M 1 serial (for j 0 N 1 serial (incf {stored} (* (aref A i j) (aref u (max 0 (min 6 (cast i64 (aref k i j)))))))))", params)
    assert not vectors(after)
    assert len([s for s in steps(after) if s.startswith("stage") and "tree" in s]) == 1
    assert_same(before, after, SIZES)


def test_a_recurrence_in_every_element_runs_in_lanes() -> None:
    before, after = scheduled("""(for i 0 M 1 serial (local z f32 () register) (setf (aref z) 0.0)
      (for t 0 N 1 serial (if (< (aref z) 4.0) ((setf (aref z) (+ (* (aref z) (aref z)) (aref u i)))))) (setf (aref w i) (aref z)))""",
                              "(size M) (size N) (buffer u f32 (M) (0) in) (buffer w f32 (M) (0) inout)")
    assert {v.count for v in vectors(after)} == {8}
    assert_same(before, after, SIZES)


@pytest.mark.slow
def test_a_batch_of_rows_times_one_matrix_is_one_product(nightly: bool) -> None:
    """Of two matrices that differ with the batch, it stays a batch."""
    sizes = "(size M) (size N) (buffer A f32 (M 3 N) (0 1 2) in) (buffer C f32 (M 3 N) (0 1 2) inout)"
    nest = "(for b 0 M 1 serial (for t 0 3 1 serial (for n 0 N 1 serial (for k 0 N 1 serial (incf (aref C b t n) (* (aref A b t k) (aref B {}k n)))))))"
    before, after = scheduled(nest.format(""), f"{sizes} (buffer B f32 (N N) (0 1) in)")
    assert [s for s in steps(after) if s.split()[0] in ("fuse", "flatten")] == ["fuse b t", "flatten C 0", "flatten A 0"]
    assert_same(before, after, SIZES if nightly else SIZES[:4])
    copied = f"(local T f32 (M 3 N) scratch) (for c 0 M 1 serial (for d 0 3 1 serial (for e 0 N 1 serial (setf (aref T c d e) (aref C c d e))))) {nest.format('').replace('aref A', 'aref T')}"
    before, after = scheduled(copied, f"{sizes} (buffer B f32 (N N) (0 1) in)")
    assert "flatten T 0" in steps(after)
    assert_same(before, after, SIZES if nightly else SIZES[:4])
    _, batch = scheduled(nest.format("b "), f"{sizes} (buffer B f32 (M N N) (0 1 2) in)")
    assert not [s for s in steps(batch) if s.startswith("flatten")]


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize(("left", "right"), [("p i", "p j"), ("i p", "j p")])
def test_a_product_of_an_array_with_its_transpose_is_packed(left: str, right: str) -> None:
    """Each operand by itself: the other one is read in another way."""
    before, after = scheduled(f"(for i 0 N 1 serial (for j 0 N 1 serial (for p 0 N 1 serial (incf (aref C i j) (* (aref A {left}) (aref A {right}))))))",
                              "(size M) (size N) (buffer A f32 (N N) (0 1) in) (buffer C f32 (N N) (0 1) inout)")
    packed = [s for s in steps(after) if s.startswith("stage") and " A read " in s]
    assert len(packed) >= 2
    assert_same(before, after, ((0, 0), (0, 5), (0, 17)))


def test_a_sum_in_loops_that_grow_is_vectorised() -> None:
    """The number of its blocks would change from iteration to iteration: it has none."""
    machine = '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true () false true))'
    before = program("(for i 0 N 1 serial (setf (aref s) 0.0) (for p 0 i 1 serial (incf (aref s) (* (aref x p) (aref y p)))) (setf (aref x i) (aref s)))",
                     "(size M) (size N) (buffer x f32 (N) (0) inout) (buffer y f32 (N) (0) in) (buffer s f32 () () inout)", machine)
    after = autoscheduler.schedule(before, Planning(verify=True))
    assert len([s for s in steps(after) if s.startswith("stage") and " s tree " in s]) == 2          # of far streams, and of the rest
    assert_same(before, after, ((0, 0), (0, 5), (0, 70)))
