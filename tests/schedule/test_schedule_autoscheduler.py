"""What the autoscheduler chooses: by structure, never by name; verified, of the same meaning, and replayable."""
from __future__ import annotations

import itertools
import re
import subprocess
import sys
from math import prod
from pathlib import Path

import pytest
from schedule_nets import assert_same, assert_sound, program

from caten import driver, loading
from caten.core.expr import Const, Op, Var, index
from caten.core.program import Schedule
from caten.core.text import show
from caten.frontend.spec import read_file
from caten.loop.statements import Fold, For, If, Incf, Local, LoopProgram, Prefetch, Vref
from caten.options import Options
from caten.schedule import autoscheduler, script
from caten.schedule.analysis.loop_queries import enclosing, loops_in
from caten.schedule.planning_log import Chosen
from caten.schedule.plans import reductions
from caten.schedule.plans.parameters import Parameter
from caten.semantics.interpret import run

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
AVX2 = '(opt 2) (target "clang" (machine x86_64_v3 32 16 (32768 524288) true))'
AVX512 = '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true))'
ENSURED = "".join([f' (ensure {n} (and (<= 0 {s}) (<= {s} 1048576))) (check {n} "{s}")'
                   for n, s in enumerate("LMNK", 1)])
ZEN = '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true () false true))'
THREADS = '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true () true))'
NEON = '(opt 2) (target "clang" (machine aarch64 16 32 (65536 524288) false))'
SMALL = ((0, 0, 0), (1, 1, 1), (2, 3, 5), (9, 7, 33), (3, 70, 18), (17, 19, 40))


def scheduled(before: LoopProgram) -> LoopProgram:
    """By the autoscheduler, with every net."""
    after = autoscheduler.schedule(before)
    assert_sound(after)
    fact = after.first(Schedule)
    assert fact is not None
    assert autoscheduler.schedule(after) is after                                      # what is scheduled stays
    replayed = script.apply(before, script.parse_schedule(show(fact)).steps)
    assert replayed is after
    return after


def taken(node: LoopProgram) -> str:
    """The text of the schedule."""
    fact = node.first(Schedule)
    assert fact is not None
    return show(fact)


def steps(node: LoopProgram) -> list[str]:
    fact = node.first(Schedule)
    return [] if fact is None else [step[0] for step in fact.steps]


def vectors(node: LoopProgram) -> list[Vref]:
    return [n for k in node.kernels for n in k.unique() if isinstance(n, Vref)]


def parallel_loops(node: LoopProgram) -> list[str]:
    return [loop.name for loop in loops_in(node) if loop.mark == "parallel"]


def test_a_map_is_vectors_and_threads() -> None:
    before = program("(for j 0 N 1 serial (setf (aref v j) (* x (aref u j))))", facts=AVX2)
    after = scheduled(before)
    assert {v.count for v in vectors(after)} == {8}
    assert len([v for v in vectors(after) if v.mask is not None]) == 2             # the rest is a vector with a mask
    assert parallel_loops(after) == ["jo"]
    assert_same(before, after, SMALL)


def test_a_map_of_two_axes_has_its_threads_outside_and_its_vectors_inside() -> None:
    before = program("(for j 0 N 1 serial (for i 0 M 1 serial (setf (aref X i j) (+ (aref A i j) (aref u j)))))",
                     facts=AVX2)
    after = scheduled(before)
    # rows that do not fill a vector have a copy, without any
    assert parallel_loops(after) == ["iw", "i"]
    assert not [v for loop in loops_in(after) if loop.name == "jw" for v in loop.unique() if isinstance(v, Vref)]
    assert all(v.axis == -1 for v in vectors(after))
    assert_same(before, after, SMALL)


def test_a_sum_along_memory_keeps_several_vectors_of_partial_sums() -> None:
    before = program("(for i 0 M 1 serial (for j 0 N 1 serial (incf (aref w i) (aref A i j))))", facts=AVX2)
    after = scheduled(before)
    (part,) = [n for k in after.kernels for n in k.unique() if isinstance(n, Local) and len(n.shape) == 2]
    assert [e.value for e in part.shape] == [4, 8]  # type: ignore[attr-defined]   # constant extents
    short, fold, rest = [n for k in after.kernels for n in k.walk() if isinstance(n, Fold)]
    # of a short row one vector, all of whose parts have masks
    assert isinstance(short.arg, Vref)
    # one vector, after a tree, and one of what is left of a row, if anything is
    assert isinstance(fold.arg, Vref)
    assert isinstance(rest.arg, Vref)
    (tail,) = [n for k in after.kernels for n in k.walk() if isinstance(n, If) and rest in n.walk() and fold not in n.walk()]
    assert not tail.otherwise
    assert not [loop for loop in loops_in(after) if loop.mark == "unroll" and fold in loop.walk()]
    assert parallel_loops(after)[-1] == "i"
    assert_same(before, after, SMALL)


def test_a_sum_across_memory_keeps_results_in_registers() -> None:
    before = program("(for i 0 M 1 serial (for j 0 N 1 serial (incf (aref v j) (aref A i j) max)))", facts=AVX2)
    after = scheduled(before)
    several = next(loop for loop in loops_in(after) if loop.name == "jo")
    assert not any(isinstance(n, Fold) for n in several.unique())
    # rows that are read side by side
    assert [loop.hi for loop in loops_in(several) if loop.name == "ii"] == [index(8)]
    # of one column the rows, in blocks; few columns in one go; those of a cached array in strips, and the last ones
    assert parallel_loops(after) == ["iso", "jvo", "jfo", "jfto", "jo"]
    assert_same(before, after, SMALL)


def test_rows_of_a_matrix_are_cut_into_pieces_and_those_of_more_axes_are_not() -> None:
    """A matrix may have one row; loops around more axes are enough to share, and pieces would cost each short row, for
    which there is a copy. Of C only a part is set: its rows do not follow each other."""
    before = program("(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref C i j) 2.0)))",
                     "(size M) (size N) (buffer C f32 (M (+ N 1)) (0 1) inout)",
                     THREADS)
    matrix = scheduled(before)
    assert_same(before, matrix, ((0, 3), (1, 5), (3, 33), (2, 4097), (1, 9000)))
    assert parallel_loops(matrix) == ["iw", "is", "i", "jo"]
    cube = scheduled(program("(for i 0 M 1 serial (for j 0 M 1 serial (for k 0 N 1 serial (setf (aref C i j k) 2.0))))",
                             "(size M) (size N) (buffer C f32 (M (+ M 1) (+ N 1)) (0 1 2) inout)", THREADS))
    assert "(split k 4096 min)" not in show(cube)
    assert "(split j 4096 min)" in show(matrix)


def test_threads_share_few_columns_in_shorter_blocks() -> None:
    nest = "(for i 0 M 1 serial (for j 0 N 1 serial (incf (aref v j) (aref A i j) max)))"
    after = scheduled(program(nest, facts=THREADS))
    assert parallel_loops(after) == ["iso", "jvo", "jfo", "jfto", "jso", "jo"]
    assert [loop.hi for loop in loops_in(after) if loop.name == "jso"] == [Op("floordiv",
                                                                              (Var("N", "i64") + 511, index(512)))]
    assert_same(program(nest, facts=THREADS), after, SMALL)


@pytest.mark.parametrize(("value", "apart"), [("(aref u j)", 4), ("(* (aref u j) (aref t j))", 2),
                                              ("(* (* (aref u j) (aref t j)) (aref r j))", 0), ("2.0", 0)])
def test_a_long_sum_reads_far_streams_at_once(value: str, apart: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four together: of one array four, of two two each; of more it would be one."""
    monkeypatch.setattr(reductions, "FAR", 48)
    monkeypatch.setattr(reductions, "BLOCK", Parameter("sums.block", (), 128))
    facts = "(size N) (buffer s f32 () () inout) (buffer u f32 (N) (0) in) (buffer t f32 (N) (0) in) (buffer r f32 (N) (0) in)"
    before = program(f"(for j 0 N 1 serial (incf (aref s) {value}))", facts + ZEN)
    after = scheduled(before)
    fact = taken(after)
    assert (f"(split j {48 * apart})" in fact) == (apart > 0)
    assert f"(split {'jt' if apart else 'j'} 128)" in fact
    assert_same(before, after, tuple([(n,) for n in (0, 1, 47, 96, 97, 192, 193, 400, 579)]))


@pytest.mark.parametrize(("length", "streams_in"), [(191, False), (192, True), (193, True)])
def test_a_sum_of_known_length_has_streams_where_it_is_long_enough(length: int, streams_in: bool,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reductions, "FAR", 48)
    before = program(f"(for j 0 {length} 1 serial (incf (aref s) (aref u j)))",
                     f"(buffer s f32 () () inout) (buffer u f32 ({length}) (0) in) (size N)", ZEN)
    after = scheduled(before)
    assert ("(split j 192)" in taken(after)) == streams_in
    assert_same(before, after, ((1,),))


@pytest.mark.slow
def test_columns_are_sums_of_rows_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """In rows that are as long as the first cache allows, because a piece of a row is a short stream."""
    monkeypatch.setattr(reductions, "FAR_ROWS", 3)
    nest = "(for i 0 M 1 serial (for j 0 N 1 serial (incf (aref v j) (aref A i j))))"
    after = scheduled(program(nest, facts=ZEN))
    fact = taken(after)
    assert "(split i 12)" in fact
    assert "(split ii 3)" in fact
    assert "(split it 8)" in fact
    # few columns; the last ones, of a cached array, of far rows and of those that are left
    assert len(re.findall(r"\(split j\w* 16 pad\)", fact)) == 5
    assert " 8192 min)" in fact
    assert_same(program(nest, facts=ZEN), after, SMALL)
    shared = taken(scheduled(program(nest, facts=ZEN.replace("false true", "true true"))))
    assert "(split i 12)" not in shared
    assert " 2048 min)" in shared
    two = "(for i 0 M 1 serial (for j 0 N 1 serial (incf (aref v j) (* (aref A i j) (aref u j)))))"
    assert "(split i 6)" in taken(scheduled(program(two, facts=ZEN)))
    product = "(for i 0 M 1 serial (for j 0 N 1 serial (incf (aref v j) (* (aref w i) (aref A i j)))))"
    assert "(split i 12)" in taken(scheduled(program(product, facts=ZEN)))             # a vector is no stream


def test_one_column_is_summed_like_a_row() -> None:
    before = program("(for j 0 N 1 serial (for i 0 M 1 serial (incf (aref v j) (aref A i j))))", facts=AVX2)
    after = scheduled(before)
    assert steps(after).count("specialize") == 4
    assert {loop.name for loop in loops_in(after) if any(isinstance(n, Fold) for n in loop.unique())} == {"iso"}
    assert_same(before, after, ((0, 1, 0), (1, 1, 0), (70, 1, 0), (150, 1, 0)))


def test_rows_that_do_not_fill_a_vector_are_lanes() -> None:
    before = program("(for i 0 M 1 serial (for j 0 N 1 serial (incf (aref w i) (aref A i j))))", facts=AVX2)
    after = scheduled(before)
    assert parallel_loops(after) == ["iwo", "im", "i"]
    assert "(specialize i (< N 8) w)" in show(after)
    assert {v.count for loop in loops_in(after) if loop.name == "iwo"
            for v in loop.unique() if isinstance(v, Vref)} == {8}
    assert_same(before, after, ((0, 1, 0), (1, 1, 0), (37, 1, 0), (37, 0, 0), (40, 15, 0), (9, 16, 0)))


def test_threads_share_a_long_sum_in_blocks_of_a_fixed_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reductions, "BLOCK", Parameter("sums.block", (), 64))
    before = program("(for j 0 N 1 serial (incf (aref s) (* (aref u j) (aref u j))))", facts=AVX2)
    after = scheduled(before)
    assert parallel_loops(after) == ["jo"]
    (part,) = [n for k in after.kernels for n in k.unique() if isinstance(n, Local) and n.space == "scratch"]
    assert show(part.shape[0]) == "(floordiv N 64)"
    assert all(any(isinstance(n, Vref) for n in loop.unique())
               for loop in loops_in(after) if loop.name in ("jio", "jto", "jtto"))
    assert_same(before, after, ((0, 0, 0), (0, 63, 0), (0, 64, 0), (0, 200, 0)))


def test_softmax_threads_over_rows_and_vectorises_each_pass() -> None:
    before = program("""(for i 0 M 1 serial (local m f32 () register) (setf (aref m) -inf) (for j 0 N 1 serial (incf (aref m) (aref A i j) max))
      (local t f32 () register) (setf (aref t) 0.0) (for j_2 0 N 1 serial (setf (aref X i j_2) (- (aref A i j_2) (aref m))))
      (for j_3 0 N 1 serial (incf (aref t) (aref X i j_3))) (for j_4 0 N 1 serial (setf (aref X i j_4) (+ (aref X i j_4) (aref t)))))""", facts=AVX2)
    after = scheduled(before)
    # rows of one element are lanes, rows of a few vectors are worked on together, and short ones are lanes
    assert parallel_loops(after) == ["ioneo", "iro", "iwo", "i"]
    assert steps(after).count("stage") == 8                       # vectors, masked vectors of the tail, rows together and the rest
    assert not [n for n in loops_in(after) if n.name == "i"
                for s in loops_in(n.body) if not any(isinstance(v, Vref) for v in s.walk())]
    assert_same(before, after, (*SMALL, (1, 1, 0), (40, 1, 0)))


def test_a_pass_that_stores_and_sums_keeps_vectors_of_partial_sums() -> None:
    text = "(for j 0 N 1 serial (let e f32 (* x (aref u j))) (setf (aref v j) e) (incf (aref s) e))"
    before = program(text, facts=AVX2)
    after = scheduled(before)
    assert parts_of_sums(after) == ["register"] * 3          # of blocks, and behind them, of whole vectors and of the tail
    assert {v.count for v in vectors(after)} == {8}
    assert_same(before, after, SMALL)
    largest = scheduled(program(text.replace("(incf (aref s) e)", "(incf (aref s) e max)"), facts=AVX2))
    assert parts_of_sums(largest) == ["register"] * 2        # what does not round needs no blocks


def parts_of_sums(program: LoopProgram) -> list[str]:
    """Where the partial results of `s` are."""
    return [n.space for k in program.kernels for n in k.unique() if isinstance(n, Local) and n.name.startswith("s_part")]


ROWS = """(for i 0 M 1 serial (local t f32 () register) (setf (aref t) 0.0) (for j 0 N 1 serial (incf (aref t) (aref A i j)))
  (for j_2 0 N 1 serial (setf (aref X i j_2) (+ (aref A i j_2) (aref t)))) (for j_3 0 N 1 serial (setf (aref X i j_3) (* (aref X i j_3) x))))"""


def test_the_last_pass_over_what_is_read_asks_for_what_comes_next() -> None:
    after = scheduled(program(ROWS, facts=AVX2))
    asks = {loop.name: [n for n in loop.walk() if isinstance(n, Prefetch)]
            for loop in loops_in(after) if loop.name in ("jo", "j_2o", "j_3o")}
    assert [(n.ref.buffer, n.how) for n in asks.pop("j_2o") if isinstance(n.ref, Vref)] == [("X", "write"), ("A", "")]
    assert asks == {"jo": [], "j_3o": []}


@pytest.mark.parametrize(("value", "asked"), [("(+ (aref A i j_2) (aref t))", []),
                                              ("(exp (- (aref A i j_2) (aref t)))", [("A", "")])], ids=["adds", "exp"])
def test_a_machine_that_fetches_ahead_is_asked_where_a_pass_computes_much(value: str,
                                                                          asked: list[tuple[str, str]]) -> None:
    after = scheduled(program(ROWS.replace("(+ (aref A i j_2) (aref t))", value), facts=ZEN))
    loop = next(loop for loop in loops_in(after) if loop.name == "j_2o")
    assert [(n.ref.buffer, n.how) for n in loop.walk() if isinstance(n, Prefetch) and isinstance(n.ref, Vref)] == asked
    assert "prefetch" not in steps(scheduled(program("(for j 0 N 1 serial (setf (aref v j) (* x (aref u j))))",
                                                     facts=ZEN)))
    assert "prefetch" in steps(scheduled(program("(for j 0 N 1 serial (setf (aref v j) (* x (aref u j))))",
                                                 facts=AVX512)))


def test_one_pass_asks_for_nothing() -> None:
    assert "prefetch" not in steps(scheduled(program("(for i 0 M 1 serial (setf (aref w i) x) (for j 0 N 1 serial (incf (aref w i) (aref A i j))))", facts=AVX2)))


@pytest.mark.parametrize(("facts", "masked"), [(AVX2, True), (AVX512, True), (NEON, False)])
def test_the_rest_of_long_vectors_is_a_vector_with_a_mask(facts: str, masked: bool) -> None:
    after = scheduled(program("(for j 0 N 1 serial (setf (aref v j) x))", facts=facts))
    assert any(v.mask is not None for v in vectors(after)) == masked


def test_lanes_up_to_a_local_are_inside() -> None:
    """The mask of a tail is seen through where its bound is a scalar that the body leaves as it is."""
    length = "(for i 0 M 1 serial (local n i64 () register) (setf (aref n) N) (setf (aref w i) x) (for j 0 (aref n) 1 serial (incf (aref w i) (aref A i j))))"
    after = scheduled(program(length, facts=AVX2))
    assert any(v.mask is not None for v in vectors(after))


@pytest.mark.slow
@pytest.mark.parametrize(("begin", "split"),
                         [("(setf (aref C i j) 0.0)", True), ("(setf (aref C i j) (aref A i 0))", False),
                          ("(setf (aref C 0 j) 0.0)", False)])
def test_a_product_under_a_condition_is_begun_in_a_nest_of_its_own(begin: str, split: bool) -> None:
    text = f"(for i 0 M 1 serial (for j 0 N 1 serial {begin} (for p 0 K 1 serial (incf (aref C i j) (* (aref A i p) (aref B p j))))))"
    params = "(size M) (size N) (size K) " + " ".join(
        [f"(buffer {n} f32 ({s}) (0 1) {access})"
         for n, s, access in (("A", "M K", "in"), ("B", "K N", "in"), ("C", "M N", "inout"))])
    after = scheduled(program(f"(if (< 0 K) ({text}))", params, AVX2))
    assert ("fission" in steps(after)) == split
    assert not split or sum(step == "vectorize" for step in steps(after)) > 5


# The copies: for one column (b and g, with m where rows have a tail) and few columns (c), where the left operand lies
# along the sum; for few, where it lies along the rows (t); for small operands (e); for few rows, where the right operand
# lies along the columns (r).
COPIES = {"A[i p] B[p j]": ["b", "g", "m", "c", "w", "e", "m", "r"], "A[p i] B[p j]": ["t", "m", "w", "e", "m", "r"], "A[i p] B[j p]": ["b", "g", "m", "c", "e", "m"],
          "A[p i] B[j p]": ["t", "m", "e", "m"]}
EXTENTS = {"i": "M", "j": "N", "p": "K"}
OPERANDS = {"A[i p] B[p j]": ("M K", "K N", "i p", "p j"), "A[p i] B[p j]": ("K M", "K N", "p i", "p j"),
            "A[i p] B[j p]": ("M K", "N K", "i p", "j p"), "A[p i] B[j p]": ("K M", "N K", "p i", "j p")}


def product(order: str, operands: str, machine: str = AVX2, dtype: str = "f32") -> LoopProgram:
    a, b, at_a, at_b = OPERANDS[operands]
    text = f"(incf (aref C i j) (* (aref A {at_a}) (aref B {at_b})))"
    for name in reversed(order):
        text = f"(for {name} 0 {EXTENTS[name]} 1 serial {text})"
    params = "(size M) (size N) (size K) " + " ".join(
        [f"(buffer {n} {dtype} ({s}) (0 1) {access})"
         for n, s, access in (("A", a, "in"), ("B", b, "in"), ("C", "M N", "inout"))])
    return program(text, params, machine)


def endings(after: LoopProgram) -> list[str]:
    """What the copies of the nest are called by."""
    fact = after.first(Schedule)
    return [] if fact is None else [str(step[3]) if len(step) > 3 else "1"
                                    for step in fact.steps if step[0] == "specialize"]


def accumulators(after: LoopProgram) -> int:
    """How many places the innermost summed loop adds to: the iterations of the unrolled loops in it."""
    inner = next(loop for loop in loops_in(after) if loop.name == "pi")
    return prod([loop.hi.value for loop in loops_in(inner.body) if isinstance(loop.hi, Const)
                 and loop.mark == "unroll"])


@pytest.mark.slice(12)
@pytest.mark.parametrize("order", ["".join(o) for o in itertools.permutations("ijp")])
@pytest.mark.parametrize("operands", OPERANDS)
@pytest.mark.slow
def test_every_order_and_transposition_of_a_product_is_tiled(order: str, operands: str) -> None:
    after = scheduled(product(order, operands))
    assert endings(after) == COPIES[operands]
    assert parallel_loops(after)[-4:] == ["jio_r", "iio_r", "jio", "iio"]      # what is packed, and tiles of the result
    assert accumulators(after) == 12                              # 6 rows of 2 vectors in registers
    added = [n for k in after.kernels for n in k.unique() if isinstance(n, Incf)]
    assert [n.ref.lanes for n in added][-2:] == [8, 8]            # whole rows of a tile, and its edge
    assert any(v.mask for v in vectors(after)) == bool(COPIES[operands])


@pytest.mark.slice(4)
@pytest.mark.parametrize("operands", OPERANDS)
@pytest.mark.slow
def test_a_tiled_product_means_the_same(operands: str) -> None:
    before = product("ijp", operands)
    assert_same(before, scheduled(before), ((0, 3, 2), (3, 0, 2), (2, 3, 0), (1, 1, 1), (2, 77, 21), (8, 32, 5),
                                            (1, 600, 3), (9, 1, 70), (7, 17, 5), (13, 33, 3)))


@pytest.mark.slow
def test_products_without_a_sum_are_swept_through_like_few_rows() -> None:
    before = product("ijp", "A[i p] B[p j]")
    after = scheduled(before)
    assert "(specialize i (or (< M 2) (< K 2)) r)" in " ".join(show(after).split())
    assert [name for name in parallel_loops(after) if "r" in name][:2] == ["ir", "jro"]            # many rows and few
    assert_same(before, after, ((5, 600, 1), (2, 600, 9), (1, 33, 1), (9, 17, 0)))


@pytest.mark.slice(2)
@pytest.mark.parametrize(("machine", "dtype", "count"),
                         [(AVX512, "f32", 16), (NEON, "f32", 16), (AVX2, "f64", 12), (AVX2, "i32", 12)])
@pytest.mark.slow
def test_tiles_follow_the_machine_and_the_type(machine: str, dtype: str, count: int) -> None:
    before = product("ijp", "A[i p] B[p j]", machine, dtype)
    after = scheduled(before)
    assert accumulators(after) == count
    assert_same(before, after, ((5, 9, 4), (14, 35, 3)))


@pytest.mark.slow
def test_sums_longer_than_a_panel() -> None:
    before = product("ijp", "A[i p] B[p j]")
    assert_same(before, scheduled(before), ((2, 5, 259),))


@pytest.mark.slow
@pytest.mark.parametrize("extents", ["M N", "M N 1"])
def test_a_sum_over_two_axes_in_different_orders(extents: str) -> None:
    """Blocks of the inner axis where it is long, blocks of the outer one elsewhere; also where the result has an axis of
    extent 1 behind its columns."""
    unit = extents.endswith("1")
    before = program(f"""(for i 0 M 1 serial (for j 0 N 1 serial (for b 0 L 1 serial (for p 0 K 1 serial
      (incf (aref C i j{" 0" * unit}) (* (aref A b i p) (aref B p b j)))))))""", f"""(size L) (size M) (size N) (size K)
      (buffer A f32 (L M K) (0 1 2) in) (buffer B f32 (K L N) (0 1 2) in)
      (buffer C f32 ({extents}) ({"0 1 2" if unit else "0 1"}) inout)""", AVX2)
    after = scheduled(before)
    assert endings(after)[:1] == ["k"]
    locals_ = {n.name: n for k in after.kernels for n in k.unique() if isinstance(n, Local) and n.space == "scratch"}
    assert {"256", "16"} <= {str(n.shape[1]) for n in locals_.values()}                 # and no more where the inner axis is long
    assert_same(before, after, ((2, 7, 17, 65), (9, 7, 3, 5), (0, 1, 1, 64), (1, 2, 3, 0)))


def test_a_batched_product_threads_over_the_batch() -> None:
    before = program("""(for b 0 L 1 serial (for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial
      (incf (aref C b i j) (* (aref A b i p) (aref B b p j)))))))""", """(size L) (size M) (size N) (size K)
      (buffer A f32 (L M K) (0 1 2) in) (buffer B f32 (L K N) (0 1 2) in) (buffer C f32 (L M N) (0 1 2) inout)""", AVX2)
    after = scheduled(before)
    assert parallel_loops(after) == ["bd", "ido", "be", "b"]       # of few rows in a lane each, these, too
    assert steps(after).count("stage") == 7
    assert_same(before, after,
                ((2, 7, 17, 3), (0, 1, 1, 1), (2, 12, 32, 5), (2, 9, 37, 4), (3, 8, 24, 1), (2, 3, 7, 0)))


@pytest.mark.slice(3)
@pytest.mark.parametrize("machine", [AVX2, AVX512, NEON])
@pytest.mark.parametrize("operands", ["A[i p] B[p j]", "A[i p] B[j p]"])
@pytest.mark.slow
def test_few_columns_are_dot_products(operands: str, machine: str) -> None:
    """Vectors along the sum, one for each element of a tile, whose lanes are added up at the end; tiles of every width
    and height."""
    before = product("ijp", operands, machine)
    after = scheduled(before)
    folds = [n for k in after.kernels for n in k.unique() if isinstance(n, Fold)]
    assert len(folds) >= 3
    assert_same(before, after,
                ((3, 1, 57), (2, 1, 16), (2, 3, 24), (7, 2, 7), (1, 1, 0), (26, 7, 50), (25, 6, 48), (24, 13, 49)))


@pytest.mark.slice(4)
@pytest.mark.parametrize("operands", OPERANDS)
@pytest.mark.slow
def test_small_operands_are_read_where_they_lie(operands: str) -> None:
    """Tiles of each height, whole and with masks; few rows of a right operand that is larger."""
    before = product("ijp", operands, AVX512)
    assert_same(before, scheduled(before), ((12, 70, 3), (8, 32, 5), (11, 65, 2), (3, 16, 4), (1, 129, 3), (23, 17, 2)))


@pytest.mark.slice(2)
@pytest.mark.parametrize("machine", ["x86_64_v4 64 32 (128 2048) true () true", "x86_64_v3 32 16 (128 2048) true"])
@pytest.mark.slow
def test_weights_along_the_sum_are_read_once_for_several_rows(machine: str) -> None:
    """Dot products: tiles of each height, single rows, and a column that fills no tile."""
    before = program("(for i 0 M 1 serial (for j 0 43 1 serial (for p 0 50 1 serial (incf (aref C i j) (* (aref A i p) (aref B j p))))))",
                     "(size M) (buffer A f32 (M 50) (0 1) in) (buffer B f32 (43 50) (0 1) in) (buffer C f32 (M 43) (0 1) inout)",
                     f'(opt 2) (target "clang" (machine {machine}))')
    after = scheduled(before)
    assert "y" in endings(after)
    assert [loop.name for loop in loops_in(after) if loop.name.startswith("jy") and not enclosing(after, loop)]     # the columns are outside
    assert_same(before, after, tuple([(m,) for m in (0, 1, 2, 5, 6, 10, 16, 17)]))


@pytest.mark.parametrize(("rows", "columns"), [(8, 45), (10, 43), (2, 41), (7, 5), (13, 45)])
@pytest.mark.slow
def test_what_is_left_of_known_extents_may_be_less_than_a_tile(rows: int, columns: int) -> None:
    """8 rows are a tile of 6 and two; 45 columns are 11 tiles of 4 and one."""
    before = program(f"(for i 0 {rows} 1 serial (for j 0 {columns} 1 serial (for p 0 50 1 serial (incf (aref C i j) (* (aref A i p) (aref B j p))))))",
                     f"(buffer A f32 ({rows} 50) (0 1) in) (buffer B f32 ({columns} 50) (0 1) in) (buffer C f32 ({rows} {columns}) (0 1) inout)", ZEN)
    after = scheduled(before)
    assert "fold add" in show(after)
    assert_same(before, after, ((),))


@pytest.mark.slow
def test_threads_share_each_of_few_products() -> None:
    before = program("""(for b 0 L 1 serial (for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial
      (incf (aref C b i j) (* (aref A b i p) (aref B b p j)))))))""", """(size L) (size M) (size N) (size K)
      (buffer A f32 (L M K) (0 1 2) in) (buffer B f32 (L K N) (0 1 2) in) (buffer C f32 (L M N) (0 1 2) inout)""",
                     THREADS + ENSURED)
    after = scheduled(before)
    # of small ones the rows, too
    assert parallel_loops(after) == ["bd", "ido", "be", "jfio_r", "ifio_r", "jfio", "ifio", "b"]
    assert "(or (<= 4 L) (<= M 32))" in taken(after)                       # a few small ones are work for one thread
    assert_same(before, after, ((3, 7, 17, 3), (4, 7, 17, 3), (1, 12, 32, 5), (4, 9, 37, 4)))


def test_every_copy_of_a_product_of_whole_tiles_sets_its_result_with_the_first_sum() -> None:
    before = program("""(for bz 0 L 1 serial (for iz 0 M 1 serial (for jz 0 N 1 serial (setf (aref C bz iz jz) 0.0))))
      (for b 0 L 1 serial (for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial
      (incf (aref C b i j) (* (aref A b i p) (aref B b p j)))))))""", """(size L) (size M) (size N) (size K)
      (buffer A f32 (L M K) (0 1 2) in) (buffer B f32 (L K N) (0 1 2) in) (buffer C f32 (L M N) (0 1 2) inout)""",
                     THREADS + ENSURED)
    after = scheduled(before)
    fact = after.first(Schedule)
    assert fact is not None
    assert [step[3] for step in fact.steps if step[0] == "stage" and step[2] == "C"] == ["begin"] * 4
    assert_same(before, after, ((3, 7, 17, 3), (4, 7, 17, 3), (1, 12, 32, 5), (5, 3, 2, 0), (2, 3, 2, 0), (2, 8, 32, 0),
                                (4, 9, 37, 4)))


@pytest.mark.slow
def test_a_condition_that_leaves_out_elements_is_not_asked_for_every_product() -> None:
    before = program("""(for iz 0 M 1 serial (for jz 0 K 1 serial (setf (aref C iz jz) 0.0)))
      (for i 0 M 1 serial (for j 0 K 1 serial (for p 0 N 1 serial (if (< (* 2 i) M) ((incf (aref C i j) (* (aref A i p) (aref B p j))))))))""", facts=AVX512)
    after = scheduled(before)
    fact = after.first(Schedule)
    assert fact is not None
    # of the nest for any sizes
    assert [step[3] for step in fact.steps if step[0] == "stage" and step[2] == "C"][-1] == "partial"
    assert_same(before, after, SMALL)


def test_constant_sizes_smaller_than_a_tile() -> None:
    before = program("(for i 0 5 1 serial (for j 0 3 1 serial (for p 0 4 1 serial (incf (aref C i j) (* (aref A i p) (aref B p j))))))",
                     "(buffer A f32 (5 4) (0 1) in) (buffer B f32 (4 3) (0 1) in) (buffer C f32 (5 3) (0 1) inout)",
                     AVX2)
    assert_same(before, scheduled(before), ((),))


@pytest.mark.parametrize(("sizes", "plan"), [
    ((64, 64, 64), "(unpacked-gemm (heights 8 3)"), ((500, 500, 500), "(packed-gemm"),
    ((1000, 8, 1000), "(unpacked-gemm (heights 6)"), ((1, 1000, 1000), "(column-reduction"),
    ((9, 1000, 1000), "(streamed-gemm (rows 4)"),
])
def test_sizes_known_at_compile_time_have_the_plan_of_such_calls(sizes: tuple[int, int, int], plan: str) -> None:
    """M, N, K. The conditions on the sizes are decided: there is one version, and no copy of the nest."""
    options = Options(config=(("MARCH", "x86_64_v4"),), binds=tuple(zip("MNK", sizes, strict=True)))
    before = driver.unscheduled(loading.load_programs(read_file(SAMPLES / "gemm.toml"), options)[0], options)
    draft = autoscheduler.drafted(autoscheduler.simplified(before))
    *_, chosen = [entry for entry in draft.log if isinstance(entry, Chosen)]
    assert chosen.plan.startswith(plan)
    assert "specialize" not in steps(scheduled(before))


@pytest.mark.parametrize("statements", [
    "(for j 1 N 1 serial (setf (aref v j) (+ (aref v (- j 1)) (aref u j))))",
    "(for j 0 N 1 serial (if (< 0:i32 (aref I j)) ((fail 1))))",
    "(setf (aref s) x)",
    "(for j 0 N 1 serial (for i 0 M 1 serial (setf (aref w i) (+ (aref w i) (aref u j)))))",
])
def test_what_is_not_understood_stays_serial(statements: str) -> None:
    before = program(statements, facts=AVX2)
    after = scheduled(before)
    assert_same(before, after, SMALL) if "fail" not in statements else None
    assert not vectors(after) or "aref w i" in statements


def test_levels() -> None:
    text = "(for j 0 N 1 serial (setf (aref v (+ j 0)) x))"
    zero = program(text, facts=AVX2.replace("(opt 2)", "(opt 0)"))
    assert autoscheduler.schedule(zero) is zero
    one = autoscheduler.schedule(program(text, facts=AVX2.replace("(opt 2)", "(opt 1)")))
    assert one.first(Schedule) is None
    assert "(aref v j)" in show(one)
    assert vectors(autoscheduler.schedule(program(text, facts=AVX2)))


def test_a_schedule_that_is_given_replaces_the_recipe() -> None:
    after = autoscheduler.schedule(program("(for j 0 N 1 serial (setf (aref v j) x))",
                                           facts=AVX2 + " (schedule (split j 4 min))"))
    assert [loop.name for loop in loops_in(after)] == ["jo", "ji"]
    assert steps(after) == ["split", "applied"]
    assert autoscheduler.schedule(after) is after


@pytest.mark.slow
def test_results_do_not_depend_on_names() -> None:
    one = scheduled(product("ijp", "A[i p] B[p j]"))
    other = autoscheduler.schedule(product("ijp", "A[i p] B[p j]").replace(name="other"))
    assert one.kernels == other.kernels


def test_conditions_between_the_loops_are_kept() -> None:
    before = program("(for i 0 M 1 serial (if (< 1 i) ((for j 0 N 1 serial (setf (aref X i j) (aref A i j))))))",
                     facts=AVX2)
    after = scheduled(before)
    assert any(isinstance(n, If) for k in after.kernels for n in k.unique())
    assert_same(before, after, SMALL)
    assert any(isinstance(n, For) for k in after.kernels for n in k.unique())
    assert run(after, {"M": 0, "N": 0, "K": 0, "x": 0.0, **_empty(after)}) == 0


def _empty(node: LoopProgram) -> dict[str, object]:
    from schedule_nets import arguments
    return {k: v for k, v in arguments(node, {"M": 0, "N": 0, "K": 0}, 0).items() if k in node.buffers}


@pytest.mark.slow
def test_a_plain_product_needs_no_islpy() -> None:
    text = show(product("ijp", "A[i p] B[p j]"))
    code = f"""import sys
from caten.core.program import resolve
from caten.core.text import read
from caten.loop import statements, verifier
from caten.schedule import autoscheduler
verifier.verify(autoscheduler.schedule(resolve(read({text!r})[0])))
sys.exit(3 if "islpy" in sys.modules or "numpy" in sys.modules else 0)"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_loop_whose_lanes_are_contiguous_is_vectorised_around_loops_that_gather() -> None:
    """A median by counting ranks. The loops over the window are innermost and index by quotients; k moves along
    memory."""
    read = "(aref A (+ i (floordiv {0} 3)) (+ k (mod {0} 3)))"
    before = program(
        "(for i 0 (- M 2) 1 serial (for k 0 (- N 2) 1 serial (for a 0 9 1 serial"
        " (local r i64 () register) (setf (aref r) 0)"
        f" (for b 0 9 1 serial (incf (aref r) (where (< {read.format('b')} {read.format('a')}) 1 0)))"
        f" (if (= (aref r) 4) ((setf (aref X i k) {read.format('a')})) ()))))", facts=AVX512)
    after = scheduled(before)
    assert taken(after) == "(schedule (split k 8) (vectorize ki) (split kt 8 pad) (vectorize kti) (parallel i) (applied))"
    assert_same(before, after, SMALL)


def test_passes_over_columns_have_a_column_in_each_lane() -> None:
    """A running sum down every column: the loop along memory is outside the one that adds. All rows are passed over
    with a strip of eight vectors."""
    before = program("(for i 0 N 1 serial (local t f32 () register) (setf (aref t) 0.0)"
                     " (for k 0 M 1 serial (incf (aref t) (aref A k i)) (setf (aref X k i) (aref t))))", facts=AVX512)
    after = scheduled(before)
    assert steps(after) == ["split", "split", "vectorize", "jam", "unroll", "unroll", "split", "vectorize", "parallel",
                            "parallel", "applied"]
    assert "(split i 128)" in taken(after)
    assert_same(before, after, SMALL)


@pytest.mark.parametrize(("kept", "shortest"), [("(aref X i j)", 32), ("(aref A i j)", 16)])
def test_rows_of_two_vectors_are_lanes_if_passes_store_what_others_read(kept: str, shortest: int) -> None:
    before = program("(for i 0 M 1 serial (local t f32 () register) (setf (aref t) 0.0)"
                     " (for k 0 N 1 serial (incf (aref t) (aref A i k)) (setf (aref X i k) (* (aref A i k) 2.0)))"
                     f" (for j 0 N 1 serial (setf (aref X i j) (- {kept} (aref t)))))", facts=AVX512,
                     params="(size M) (size N) (size K) (buffer A f32 (M N) (0 1) in) (buffer X f32 (M N) (0 1) inout)")
    after = scheduled(before)
    assert f"(specialize i (< N {shortest}) w)" in taken(after)


def test_threads_share_strips_of_four_vectors_if_there_are_few() -> None:
    before = program("(for i 0 N 1 serial (local t f32 () register) (setf (aref t) 0.0)"
                     " (for k 0 M 1 serial (incf (aref t) (aref A k i)) (setf (aref X k i) (aref t))))", facts=THREADS)
    after = scheduled(before)
    assert "(specialize i (<= 512 N) v)" in taken(after)
    assert "(split iv 128)" in taken(after)
    assert "(split i 64)" in taken(after)
    assert_same(before, after, SMALL)


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize("facts", [AVX512, THREADS])
@pytest.mark.parametrize("size", [32, 64])
def test_no_version_is_made_for_calls_that_another_version_has_already(facts: str, size: int) -> None:
    """The copy of a product whose right operand fits the cache is for all calls with rows, and nothing is left for other plans."""
    before = program(f"(for i 0 M 1 serial (for j 0 {size} 1 serial (for k 0 {size} 1 serial (incf (aref C i j) (* (aref A i k) (aref B k j))))))",
                     f"(size M) (buffer A f32 (M {size}) (0 1) in) (buffer B f32 ({size} {size}) (0 1) in) (buffer C f32 (M {size}) (0 1) inout)",
                     facts)
    after = scheduled(before)
    assert steps(after).count("specialize") == 1
    assert "stage" in steps(after)
    assert_same(before, after, ((0,), (1,), (9,), (70,)))
