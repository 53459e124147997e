"""What the C text looks like: names, literals, comments, positions, indices; and what is refused."""
from __future__ import annotations

import re
from typing import Any, ClassVar

import pytest

from caten.core.expr import Const, Expr, Op, Var
from caten.core.program import resolve
from caten.core.text import read
from caten.errors import CatenError
from caten.render.c_expressions import Expressions
from caten.render.c_identifiers import Names, symbol
from caten.render.c_literals import literal
from caten.render.cstyle import CStyle
from caten.render.helper_functions import Helpers
from caten.render.scratch_memory import layout, needed, scratch_bytes
from caten.render.unrolling import unroll


class Threads(CStyle):
    settings: ClassVar = {"OMP": True}


def program(text: str) -> Any:
    return resolve(read(text)[0])


def rendered(body: str, params: str = "(buffer X f32 (M N) (0 1) in) (buffer Y f32 (M N) (0 1) out) (size M) (size N)", renderer: CStyle | None = None) -> str:
    return (renderer or CStyle()).render(program(f"(loop Op {params} (kernel main {body}))"))


@pytest.mark.parametrize(("name", "expected"), [
    ("A", "A"), ("int", "int_"), ("exp", "exp_"), ("expf", "expf_"), ("ct_x", "x_ct_x"), ("_A", "x_A"), ("size_t", "x_size_t_"), ("NULL", "NULL_"),
    ("INT32_MAX", "x_INT32_MAX"), ("free", "free_"), ("restrict", "restrict_"), ("a-b", "a_b"),
])
def test_names_are_kept_or_made_harmless(name: str, expected: str) -> None:
    assert Names().of(name) == expected


def test_names_never_collide() -> None:
    names = Names(["int_", "int", "a_b", "a-b"])
    assert [names.of(n) for n in ("int_", "int", "a_b", "a-b")] == ["int_", "int__", "a_b", "a_b_"]
    assert symbol("My-Op.2") == "ct_my_op_2"


@pytest.mark.parametrize("name", ["max_f32", "MAX-f32", "max"])
def test_a_helper_never_has_the_name_of_a_function(name: str) -> None:
    kernel = "f32" if name == "max" else "k"
    text = CStyle().render(program(f"(loop {name} (buffer X f32 (N) (0) inout) (size N) (kernel {kernel} (setf (aref X 0) (max (aref X 0) 1.0))))"))
    assert text.count("static inline float ct_max_f32_(float a, float b)") == 1
    assert "X[0] = ct_max_f32_(X[0], 1.0f);" in text
    assert f"CT_API int32_t {symbol(name)}(" in text
    assert "APART" not in text


def test_the_check_at_entry_has_a_name_of_its_own() -> None:
    scratch = "(local T f32 (N) global)"
    text = CStyle().render(*[program(f"(loop {name} (buffer X f32 (N) (0) inout) (size N) (check 1 \"low\") (ensure 1 (<= 0 N)) {scratch} (kernel k "
                                     "(setf (aref T 0) (aref X 0)) (setf (aref X 0) (aref T 0))))") for name in ("a_entry", "a")])
    assert "static int32_t ct_a_entry_(" in text


@pytest.mark.parametrize("name", ["c64", "C128", "manifest"])
def test_names_of_the_interface_are_kept_for_it(name: str) -> None:
    with pytest.raises(CatenError, match=r"E666: the operator .* which every library keeps for itself"):
        CStyle().render(program(f"(loop {name} (kernel k))"))


@pytest.mark.parametrize(("value", "dtype", "expected"), [
    (0.1, "f32", "0.1f"), (0.1, "f64", "0.1"), (1.0, "f32", "1.0f"), (1e30, "f32", "1e+30f"), (16777217.0, "f32", "16777216.0f"), (1e39, "f32", "INFINITY"),
    (float("-inf"), "f64", "-INFINITY"), (float("nan"), "f32", "NAN"), (-0.0, "f32", "-0.0f"), (-(2**31), "i32", "(-2147483647 - 1)"),
    (-(2**63), "i64", "(-9223372036854775807 - 1)"), (5, "u32", "5u"), (300, "u8", "44"), (True, "bool", "1"), (1e-45, "f32", "1e-45f"),
])
def test_literals(value: Any, dtype: str, expected: str) -> None:
    assert literal(value, dtype).text == expected


def test_the_comment_on_top_cannot_end_early() -> None:
    text = CStyle().render(program('(loop Op (doc "a */ b /* c ??/ d \u202e") (signature "X{float}[N]") (buffer X f32 (N) (0) inout) (size N) (kernel main))'))
    head = text.split("*/")[0]
    assert "a * / b / * c ? ?/ d" in head
    assert "X{float}[N]" in head
    assert "\u202e" not in text


def test_indices_follow_order_and_strides() -> None:
    body = "(for i 0 M 1 serial (for j 0 N 1 serial (setf (aref Y i j) (aref X i j))))"
    assert "Y[i * N + j] = X[i * N + j];" in rendered(body)
    assert "Y[i * N + j] = X[j * M + i];" in rendered(body, "(buffer X f32 (M N) (1 0) in) (buffer Y f32 (M N) (0 1) out) (size M) (size N)")
    strided = "(buffer X f32 (M N) (0 1) in s 1) (buffer Y f32 (M N) (0 1) out) (size M) (size N) (size s)"
    text = rendered(body, strided)
    assert "X[i * s + j]" in text
    assert "float *restrict Y, int64_t M, int64_t N, int64_t s)" in text


def test_bounds_that_could_change_are_evaluated_once() -> None:
    text = rendered("(for i 0 (aref L) 1 serial (setf (aref L) 0))", "(buffer L i64 () () inout)")
    assert "const int64_t ct_i_end = L[0];" in text
    assert "i < ct_i_end; i++" in text


def test_copies_of_an_unrolled_body_evaluate_their_bounds_under_names_of_their_own() -> None:
    text = rendered("(for i 0 3 1 unroll (for j 0 (aref L i) 1 serial (setf (aref L j) 0)))", "(buffer L i64 (3) (0) inout)")
    assert "const int64_t ct_j_end = L[0];" in text
    assert "const int64_t ct_j_end_2 = L[1];" in text
    assert "j < ct_j_end_3; j++" in text


def test_a_dynamic_step_runs_either_way() -> None:
    assert "s > 0 ? i < N : s < 0 && i > N; i += s" in rendered("(for i 0 N s serial (setf (aref Y i) 0.0))", "(buffer Y f32 (N) (0) out) (size N) (scalar s i64)")


def test_unrolled_loops_are_written_out() -> None:
    text = rendered("(for i 0 3 1 unroll (setf (aref Y i) (cast f32 (* i 2))))", "(buffer Y f32 (3) (0) out)")
    assert all(f"Y[{i}] = (float){2 * i};" in text for i in range(3))
    big = program("(loop Op (buffer Y f32 (N) (0) out) (size N) (kernel main (for i 0 N 1 unroll (setf (aref Y i) 0.0))))")
    assert unroll(big) is big
    assert "CT_UNROLL(4) for (int64_t i" in CStyle().render(big)


def test_what_never_runs_in_an_unrolled_copy_is_left_out() -> None:
    """It may use elements that an array in registers does not have."""
    inside = "(if (and (< i 2) (< 0 M)) ((setf (aref r i) 1.0)) ((setf (aref Y (where (< i 3) 0 1)) 2.0)))"
    text = rendered(f"(local r f32 (2) register) (for i 0 4 1 unroll {inside}) (setf (aref Y 0) (aref r 1))", "(buffer Y f32 (2) (0) inout) (size M)")
    assert "r_1 = 1.0f" in text
    assert "r_2" not in text
    assert text.count("if (0 < M)") == 2


class Unrolls(CStyle):
    promotes_unrolled_arrays = True


def test_the_rest_that_vectors_leave_is_not_unrolled() -> None:
    vectors = "(for i 0 N 1 serial (setf (vref Y 8 (0 (* i 8)) 1) (splat 8 1.0)))"
    rest = "(for j 0 7 1 serial (setf (aref Y 0 j) 0.0))"
    parameters = "(buffer Y f32 (8 M) (0 1) out) (size M) (size N)"
    assert "CT_UNROLL(1) for (int64_t j" in rendered(f"(for k 0 N 1 serial {vectors} {rest})", parameters)
    assert "CT_UNROLL" not in rendered(f"{vectors} {rest}", parameters)       # nests of their own


def test_a_compiler_that_unrolls_itself_is_asked_to() -> None:
    text = rendered("(for i 0 3 1 unroll (setf (aref Y i) 0.0))", "(buffer Y f32 (3) (0) out)", Unrolls())
    assert "CT_UNROLL(3) for (int64_t i = 0; i < 3; i++)" in text
    assert text.count("Y[i]") == 1


class MakesVectors(Threads):
    auto_vectorizes = True


@pytest.mark.parametrize("fn", ["mod", "floordiv", "truncdiv", "truncmod"])
@pytest.mark.parametrize("mark", ["serial", "parallel"])
def test_a_division_under_a_condition_keeps_its_loop_scalar(fn: str, mark: str) -> None:
    """The C compiler would divide for the first lane of a vector alone."""
    parameters = "(buffer Y i64 (M) (0) inout) (size M) (size N)"
    scalar = '__asm__ volatile ("");'
    around = f"(for i 0 M 1 {mark} (setf (aref Y i) "
    for chosen in (f"(where (< (aref Y i) 0) 3 (aref Y ({fn} i N)))", f"(where (and (< (aref Y i) 0) (< ({fn} i N) 2)) 3 4)"):
        text = rendered(f"{around}{chosen}))", parameters, MakesVectors())
        assert re.search(r"for \(int64_t i = 0; [^{]*{\n *" + re.escape(scalar), text)
        assert scalar not in rendered(f"{around}{chosen}))", parameters, Threads())
    for always in (f"({fn} i N)", f"(where (< (aref Y i) 0) 3 (aref Y ({fn} i 7)))", f"(where (< (aref Y i) 0) 3 (aref Y ({fn} M N)))", f"(where (< ({fn} i N) 0) 3 4)", f"(where (< (aref Y i) 0) (* 2 N) ({fn} i 2))"):
        assert scalar not in rendered(f"{around}{always}))", parameters, MakesVectors())


def test_the_loop_with_the_condition_is_the_one_that_is_kept_scalar() -> None:
    """What is under the condition in all its iterations may become vectors."""
    parameters = "(buffer Y i64 (M N) (0 1) inout) (size M) (size N)"
    row = "(for j 0 N 1 serial (setf (aref Y i j) (aref Y (mod i N) j)))"
    text = rendered(f"(for i 0 M 1 serial (if (< (aref Y i 0) 0) ({row}) ((setf (aref Y i 0) 1))))", parameters, MakesVectors())
    assert text.index("for (int64_t i") < text.index("__asm__ volatile") < text.index("for (int64_t j")
    assert text.count("__asm__ volatile") == 1
    inside = "(for j 0 N 1 serial (if (< (aref Y i j) 0) ((setf (aref Y i j) (mod j (+ N i))))))"
    text = rendered(f"(for i 0 M 1 serial (if (< (aref Y i 0) 0) ({inside})))", parameters, MakesVectors())
    assert text.count("__asm__ volatile") == 2, "the inner loop may be written out"


class ConfusesLanes(Threads):
    confuses_lanes = True


@pytest.mark.parametrize(("loop", "count"), [
    ("(for i 0 M 1 serial (for j 0 3 1 serial (setf (aref Y i j) (where (< (aref X i j) 0) (aref Z i j) 7))))", 1),
    ("(for i 0 M 1 serial (for j 0 3 1 serial (if (< (aref X i j) 0) ((setf (aref Y i j) (aref Z i j))))))", 1),
    ("(for i 0 M 1 serial (setf (aref Y i 0) (where (< (aref X i 0) 0) (aref Z i 0) 7)) (setf (aref Y i 1) (where (< (aref X i 1) 0) (aref Z i 1) 7)))", 1),
    ("(for i 0 M 1 serial (for j 0 3 1 unroll (let t i64 (aref X i j)) (setf (aref Y i j) (where (< t 0) (aref Z i j) 7))))", 1),
    ("(for i 0 M 1 serial (for j 0 3 1 serial (setf (aref Y i j) (where (< (aref X i j) 0) (aref X i j) 7))))", 0),
    ("(for i 0 M 1 serial (for j 0 3 1 serial (setf (aref Y i j) (max (aref X i j) (aref Z i j)))))", 0),
    ("(for i 0 M 1 serial (for j 0 30 1 serial (setf (aref Y i 0) (where (< (aref X i 0) 0) (aref Z i 0) 7))))", 0),
    ("(for i 0 M 1 serial (setf (aref Y i 0) (where (< (aref X i 0) 0) (aref Z i 0) 7)))", 0)])
def test_loads_side_by_side_under_a_condition_keep_their_loop_scalar(loop: str, count: int) -> None:
    """The C compiler would load them together, and give lanes the elements of others."""
    parameters = " ".join([f"(buffer {name} i64 (M 3) (0 1) inout)" for name in "XYZ"]) + " (size M)"
    assert rendered(loop, parameters, ConfusesLanes()).count('__asm__ volatile ("");') == count
    assert "__asm__" not in rendered(loop, parameters, Threads())


def test_positions_in_the_spec() -> None:
    text = CStyle().render(program("""(loop Op (buffer Y f32 (N) (0) out) (size N) (source "a\\"b.toml") (lines) (at 7 3 "i") (at 8 5 "(aref Y i)")
      (kernel main (for i 0 N 1 serial (setf (aref Y i) 0.0))))"""))
    assert '#line 7 "a\\"b.toml"\n    for' in text
    assert '#line 8 "a\\"b.toml"\n        Y[i] = 0.0f;' in text


def test_parallel_loops_only_with_threads_and_only_when_there_is_work() -> None:
    body = "(for i 0 M 1 parallel (for j 0 N 1 serial (setf (aref Y i j) 0.0)))"
    assert "omp" not in rendered(body)
    assert re.search(r"if \(\(double\)M \* .*\) {\n        #pragma omp parallel for schedule\(static\) first", rendered(body, renderer=Threads()))
    assert "omp" not in rendered("(for i 0 8 1 parallel (setf (aref Y i) 0.0))", "(buffer Y f32 (8) (0) out)", Threads())
    nested = "(for i 0 M 1 parallel (for j 0 N 1 parallel (setf (aref Y i j) 0.0)))"
    assert rendered(nested, renderer=Threads()).count("#pragma") == 1


@pytest.mark.parametrize(("before", "pragma", "most"), [("", "parallel for schedule(static)", 48), ("(for k 0 N 1 serial ", "parallel", 72)])
def test_a_short_nest_is_written_for_one_thread_too(before: str, pragma: str, most: int) -> None:
    """The OpenMP library is not asked to stay on one thread, which takes longer than a small nest."""
    team = len(before) > 0
    def nest(stores: int) -> str:
        return rendered(f"{before}(for i 0 M 1 parallel (for j 0 N 1 serial {STORE * stores}))" + ")" * team, renderer=Threads())

    short = nest(2)
    start, other = short.index(f"#pragma omp {pragma} firstprivate("), short.index("} else {")
    assert short.index("    if ((double)") < start < other < short.index("for (int64_t i", other)
    assert short.count("for (int64_t i") == 2
    assert "#pragma" not in short[other:]
    around = 5 + 3 * team                                  # pragmas, heads and ends
    assert "} else {" in nest(most - around)
    longer = nest(most - around + 1)
    assert f"#pragma omp {pragma} if ((double)" in longer
    assert longer.count("for (int64_t i") == 1


STORE = "(setf (aref Y i j) 0.0)"


@pytest.mark.parametrize(("nest", "loops"), [
    (f"(for i 0 M 1 parallel (for j 0 N 1 parallel {STORE}))", 2),
    (f"(for k 0 M 1 serial (for i 0 M 1 parallel (for j 0 N 1 parallel (for l 0 2 1 parallel {STORE}))))", 3),
    (f"(for i 0 M 1 parallel (for j 0 N 1 serial {STORE}))", 0),
    (f"(for i 0 M 1 parallel (for j 0 (min i N) 1 parallel {STORE}))", 0),
    (f"(for i 0 M 1 parallel (for j 0 (cast i64 (aref Y 0 0)) 1 parallel {STORE}))", 0),
    (f"(for i 0 M 1 parallel (setf (aref Y i 0) 1.0) (for j 0 N 1 parallel {STORE}))", 0),
])
def test_threads_share_the_iterations_of_loops_alone_in_each_other(nest: str, loops: int) -> None:
    assert re.findall(r"collapse\((\d)\)", rendered(nest, renderer=Threads())) == [str(loops)] * (loops > 0)


def test_threads_have_copies_of_what_they_use_from_outside() -> None:
    text = rendered("""(let a f32 (aref X 0 0)) (local t f32 (2) stack) (local b f32 (M) scratch)
      (for k 0 M 1 serial (setf (aref t 0) a) (setf (aref b k) a)
        (for i 0 M 1 parallel (let c f32 (* a (aref b i))) (for j 0 N 1 serial (setf (aref Y i j) (+ (+ c (aref t 0)) (cast f32 k))))))""", renderer=Threads())
    (copied,) = re.findall(r"firstprivate\((.*)\)", text)
    assert sorted(copied.split(", ")) == ["N", "Y", "a", "b", "k"]                     # and not the array t, nor what is declared inside


BETWEEN = "(for i 0 N 1 parallel (setf (aref {} i) (+ 1.0 (aref {} i))))"


def two_kernels(*repeats: str) -> str:
    return (f"(loop Op (buffer X f32 (N) (0) in) (buffer Y f32 (N) (0) inout) (size N) (local t f32 (N) global) (local u f32 (N) global) (local v f32 (N) global) "
            f"(kernel a {BETWEEN.format('t', 'X')}) (kernel b {BETWEEN.format('u', 't')}) {' '.join(repeats)} (kernel c {BETWEEN.format('Y', 'v')}))")


def test_threads_have_copies_of_the_pointers_to_arrays_between_kernels() -> None:
    """In scratch memory of its own, and as a parameter."""
    text = Threads().render(program(two_kernels("(repeat b (t u) (u v))")))
    copied = [set(words.split(", ")) for words in re.findall(r"firstprivate\((.*)\)", text)]
    assert copied == [{"X", "t"}, {"t", "u"}, {"Y", "v"}]


@pytest.mark.parametrize(("repeat", "aligned"), [("(repeat b (t u) (u v))", ["t", "u"]), ("(repeat b (u v))", ["u"]), ("(repeat b (u Y))", []),
                                                 ("(repeat b (t X) (u v))", ["u"])])
def test_a_parameter_is_aligned_that_is_in_scratch_memory_in_every_run(repeat: str, aligned: list[str]) -> None:
    text = CStyle().render(program(two_kernels(repeat)))
    assert re.findall(r"    (\w+) = __builtin_assume_aligned\(\1, 64\);", text) == aligned


def test_a_check_in_two_loops_that_threads_share_leaves_the_inner_one() -> None:
    text = rendered("(for i 0 M 1 parallel (for j 0 N 1 parallel (if (< (aref X i 0) 0.0) ((fail 3))) (setf (aref Y i j) 0.0)))", renderer=Threads())
    assert text.index("for (int64_t j") < text.index("__atomic_load_n(&ct_failed") < text.index("goto ct_next_j;") < text.index("ct_next_j: ;")


def test_a_failing_parallel_loop_skips_the_rest() -> None:
    text = rendered("(for i 0 M 1 parallel (if (< (aref X i 0) 0.0) ((fail 3))) (for j 0 N 1 serial (setf (aref Y i j) 0.0)))", renderer=Threads())
    assert "if (__atomic_load_n(&ct_failed, __ATOMIC_RELAXED)) continue;" in text
    assert "goto ct_next_i;" in text
    assert "if (ct_failed) return ct_failed;" in text


SCRATCH = """(loop Op (buffer Y f32 (M) (0) inout) (size M)
  (kernel main (local A f32 (M) scratch) (for i 0 M 1 parallel (local B f64 (10) scratch) (setf (aref B 0) 1.0:f64) (setf (aref A i) (cast f32 (aref B 0)))
    (setf (aref Y i) (aref A i)))))"""


def test_scratch_of_constant_size_that_no_memory_has_is_asked_for_without_wrapping() -> None:
    op = program("(loop Op (buffer Y f32 () () out) (kernel main (local T f32 (1099511627776 1099511627776) scratch) (setf (aref T 0 0) 1.0) (setf (aref Y) (aref T 0 0))))")
    assert "ct_allocate(4611686018427387904)" in CStyle().render(op)


def test_blocks_that_may_be_large_ask_for_huge_pages() -> None:
    assert "ct_allocate" not in CStyle().render(program(SCRATCH.replace("f32 (M) scratch", "f32 (9) scratch")))
    assert "void *ct_block = ct_allocate(ct_bytes);" in CStyle().render(program(SCRATCH))
    text = CStyle().render(program(SCRATCH.replace("(local B f64 (10) scratch) (setf (aref B 0) 1.0:f64) (setf (aref A i) (cast f32 (aref B 0)))", "(setf (aref A i) 1.0)")))
    assert "void *ct_block = ct_bytes > 0 ? ct_allocate(ct_bytes) : ct_none;" in text
    assert "if (ct_bytes > 0) free(ct_block);" in text
    assert "(void)madvise(block + ahead, ((size_t)bytes - ahead) & ~(size_t)2097151, 14);" in text


NEEDS = "(local A f32 (N) scratch) (setf (aref A 0) 1.0) (setf (aref Y 0 0) (aref A 0))"
LITTLE = "(setf (aref Y 0 0) 0.0)"


@pytest.mark.parametrize(("nest", "when"), [
    (NEEDS, True),
    (LITTLE, False),
    (f"(if (< M 8) ({NEEDS}) ({LITTLE}))", "(< M 8)"),
    (f"(if (< M 8) ({LITTLE}) ((if (< N 4) ({NEEDS}))))", "(and (not (< M 8)) (< N 4))"),
    (f"(if (< M 8) ({NEEDS}) ({NEEDS}))", True),
    (f"(if (< M 8) ({NEEDS})) (if (< N 8) ({NEEDS}))", "(or (< M 8) (< N 8))"),
    (f"(for i 0 M 1 serial (if (< M 8) ({NEEDS})))", True),
    (f"(if (< (aref Y 0 0) 1.0) ({NEEDS}))", True),
    (f"(let m i64 (+ M 1)) (if (< m 8) ({NEEDS}))", True),
])
def test_the_calls_that_use_scratch_are_known_by_their_sizes(nest: str, when: bool | str) -> None:
    op = program(f"(loop Op (buffer Y f32 (M N) (0 1) inout) (size M) (size N) (kernel main {nest}))")
    assert str(needed(op)) == str(when)


def test_calls_that_use_no_scratch_of_threads_do_not_take_it() -> None:
    nest = "(for i 0 M 1 parallel (local B f64 (10) scratch) (setf (aref B 0) 1.0:f64) (setf (aref Y i) (cast f32 (aref B 0))))"
    text = Threads().render(program(f"(loop Op (target \"clang\" (machine x86_64_v4 64 32 (32768 1048576) true () true true) (config OMP \"1\")) (buffer Y f32 (M) (0) inout) (size M) (kernel main (if (< 8 M) ({nest}))))"))
    assert "ct_threads = 8 < M ? omp_get_max_threads() : 0;" in text
    assert "ct_bytes = ct_threads > 0 ? 128 * ct_threads : 0;" in text
    assert "void *ct_block = ct_bytes > 0 ? ct_allocate(ct_bytes) : ct_none;" in text


def test_the_size_of_the_workspace_takes_the_sizes_and_the_scalars_that_it_depends_on() -> None:
    text = CStyle().render(program("""(loop Op (buffer Y f32 (M) (0) inout) (size M) (scalar a f32) (scalar k i64)
      (kernel main (for i 0 M 1 serial (local B f32 (k) scratch) (setf (aref B 0) a) (setf (aref Y i) (aref B 0)))))"""))
    size = text[text.index("CT_API int64_t ct_op_ws_size(int64_t k, int64_t M)"):]
    assert "if (M == 0) return 0;" in size
    assert "return ((k * 4 + 63) >> 6) * 64 > 0 ? ((k * 4 + 63) >> 6) * 64 : 0;" in size
    none = CStyle().render(program("(loop Op (buffer Y f32 (M) (0) inout) (size M) (kernel main (for i 0 M 1 serial (setf (aref Y i) 1.0:f32))))"))
    assert "CT_API int64_t ct_op_ws_size(int64_t M)\n{\n    (void)M;\n    return 0;\n}" in none


def test_scratch_is_sliced_per_thread() -> None:
    op = program(SCRATCH)
    assert repr(scratch_bytes(op, parallel=True)) == "(where (= M 0) 0 (+ (* (floordiv (+ (* M 4) 63) 64) 64) (* 128 ct_threads)))"
    assert repr(scratch_bytes(op)) == "(where (= M 0) 0 (+ 128 (* (floordiv (+ (* M 4) 63) 64) 64)))"
    assert repr(layout(op, parallel=True).slots["B"].step) == "128"
    text = Threads().render(op)
    assert "+ ct_thread * 128), 64)" in text
    assert "const int64_t ct_threads = omp_get_max_threads();" in text


def test_a_compiler_does_not_see_how_an_offset_depends_on_sizes() -> None:
    """clang takes the formula apart in every loop that reads the array. B comes after A, which has 4 · M bytes."""
    text = CStyle().render(program("""(loop Op (buffer Y f32 (M) (0) inout) (size M)
      (kernel main (local A f32 (M) scratch) (local B f32 (M M) scratch) (local C f32 (10) scratch) (setf (aref A 0) 1.0) (setf (aref B 0 0) 1.0) (setf (aref C 0) 1.0)
        (for i 0 M 1 serial (setf (aref Y i) (+ (+ (aref A 0) (aref B 0 0)) (aref C 0))))))"""))
    assert dict(re.findall(r"(\w) = __builtin_assume_aligned\(ct_scratch(?: \+ (ct_\w+))?", text)) == {"A": "", "B": "ct_offset", "C": ""}


def test_operators_without_a_spelling_become_functions() -> None:
    text = rendered("(for i 0 M 1 serial (setf (aref Y i 0) (sigmoid (clip (aref X i 0) 0.0 1.0))))")
    assert "ct_sigmoid_f32(ct_clip_f32(X[i * N], 0.0f, 1.0f))" in text
    assert text.index("static inline float ct_sigmoid_f32(float x)") < text.index("ct_op_main")


class NoComplex(CStyle):
    types: ClassVar = {k: v for k, v in CStyle.types.items() if not k.startswith("c")}
    ops: ClassVar = {k: v for k, v in CStyle.ops.items() if k != "conj"}


@pytest.mark.parametrize(("code", "text"), [
    ("E611", "(loop Op (buffer Y c64 (1) (0) inout) (kernel main))"),
    ("E612", "(loop Op (buffer Y f32 (8) (0) inout) (kernel main (for i 0 8 1 grid (setf (aref Y i) 0.0))))"),
    ("E612", "(loop Op (kernel main (barrier)))"),
    ("E615", "(loop Op (size N) (kernel main (for i 0 N 1 serial (local T f32 (i) scratch))))"),
    ("E616", "(loop Op (buffer Y f32 (8) (0) inout) (kernel main (setf (aref Y 0) (conj (aref Y 1)))))"),
])
def test_refusals(code: str, text: str) -> None:
    with pytest.raises(CatenError) as info:
        NoComplex().render(program(text))
    assert info.value.diagnostics[0].code == code
    assert info.value.diagnostics[0].hint


def test_a_function_through_a_type_that_is_not_there_is_refused() -> None:
    class Small(CStyle):
        types: ClassVar = {k: v for k, v in CStyle.types.items() if k != "f64"}
        ops: ClassVar = {k: v for k, v in CStyle.ops.items() if k != "pow"}
    with pytest.raises(CatenError, match=r"E616.*goes through f64"):
        Small().render(program("(loop Op (buffer Y f32 (8) (0) inout) (kernel main (setf (aref Y 0) (pow (aref Y 0) 3.0))))"))


def test_without_float64_memory_is_counted_in_float32() -> None:
    class Small(CStyle):
        types: ClassVar = {k: v for k, v in CStyle.types.items() if k != "f64"}
    text = Small().render(program("(loop Op (size N) (buffer Y f32 (N) (0) inout) (kernel main (local T f32 (N) scratch) (setf (aref Y 0) (aref T 0))))"))
    assert "(float)N" in text
    assert "double" not in text


def test_complex_numbers_have_no_vectors() -> None:
    with pytest.raises(CatenError) as info:
        CStyle().render(program("(loop Op (buffer Y c64 (8) (0) inout) (kernel main (setf (vref Y 4 (0)) (+ (vref Y 4 (0)) (vref Y 4 (4))))))"))
    assert info.value.diagnostics[0].code == "E613"


def test_the_same_text_twice() -> None:
    assert CStyle().render(program(SCRATCH)) == CStyle().render(program(SCRATCH))
    assert Const(1, "i64") is Const(1, "i64")


def test_threads_are_started_once_for_all_parallel_loops_of_a_nest() -> None:
    text = rendered("(for k 0 N 1 serial (for i 0 M 1 parallel (for j 0 N 1 serial (setf (aref Y i j) 0.0))))", renderer=Threads())
    assert text.index("#pragma omp parallel firstprivate") < text.index("for (int64_t k") < text.index("#pragma omp for") < text.index("for (int64_t i")


@pytest.mark.parametrize("between", ["(setf (aref Y 0 0) 1.0)", "(let v f32 (aref Y 0 0))", "(local t f32 (4) stack)"])
def test_threads_share_no_loop_with_computations_of_its_own(between: str) -> None:
    body = f"(for k 0 N 1 serial {between} (for i 0 M 1 parallel (for j 0 N 1 serial (setf (aref Y i j) 0.0))))"
    assert "#pragma omp parallel for" in rendered(body, renderer=Threads())


@pytest.mark.parametrize("nest", [
    "(for i 0 (cast i64 (aref Y 0 0)) 1 parallel BODY)", "(for i (cast i64 (aref Y 0 0)) M 1 parallel BODY)",
    "(for l 0 (cast i64 (aref Y 0 0)) 1 serial (for i 0 M 1 parallel BODY))", "(for l (cast i64 (aref Y 0 0)) M 1 serial (for i 0 M 1 parallel BODY))",
    "(for l 0 M (cast i64 (aref Y 0 0)) serial (for i 0 M 1 parallel BODY))", "(if (< (aref Y 0 0) 1.0) ((for i 0 M 1 parallel BODY)))",
])
def test_threads_share_no_loop_that_reads_what_the_next_one_may_write(nest: str) -> None:
    """A thread that is late would see what another one, already in the next parallel loop, has stored."""
    body = f"(for k 0 N 1 serial {nest.replace('BODY', '(for j 0 N 1 serial (setf (aref Y i j) 0.0))')})"
    alone = rendered(body.replace("(cast i64 (aref Y 0 0))", "2").replace("(aref Y 0 0)", "2.0"), renderer=Threads())
    assert "#pragma omp for" in alone
    assert "#pragma omp for" not in rendered(body, renderer=Threads())


def test_the_lanes_of_a_condition_are_found_once_for_each_part() -> None:
    """What is asked of every part of a long conjunction would otherwise walk all that is below it."""
    looked: list[str] = []

    class Vectors(dict[str, tuple[int, int]]):
        def get(self, name: str, default: Any = None) -> Any:
            looked.append(name)
            return super().get(name, default)

    ex = Expressions(Helpers({}, {}, {}, lambda *_: ""), Names([]), vectors=Vectors(v=(8, 32)))
    cond: Expr = Var("a0", "bool")
    parts = [cond := Op("and", (cond, Var(f"a{n}", "bool"))) for n in range(1, 50)]
    assert [ex.lanes(part) for part in reversed(parts)] == [1] * 49
    assert len(looked) == 50
    assert ex.lanes(Op("add", (Var("v", "f32"), Var("a", "f32")))) == 8


@pytest.mark.parametrize(("fn", "identity", "symbol", "body", "line"), [
    (fn, identity, symbol, body, line) for fn, identity, symbol in (("min", "inf", "<"), ("max", "-inf", ">"))
    for body, line in (("(incf (aref Y i j) {} FN)", "X[i * N + j] SYM Y[i * N + j] ? X[i * N + j] : Y[i * N + j];"),
                       ("(incf (vref Y 8 (i j)) {} FN)", "ct_select_f32x8(ct_load_f32x8(X + i * N + j) SYM ct_load_f32x8(Y + i * N + j), "))])
def test_an_extreme_without_nan_is_one_comparison(fn: str, identity: str, symbol: str, body: str, line: str) -> None:
    """`if x < y: y = x` keeps y where x is NaN, as the comparison does by itself."""
    x, none = ("(vref X 8 (i j))", f"(splat 8 {identity})") if "vref" in body else ("(aref X i j)", identity)
    text = rendered("(for i 0 M 1 serial (for j 0 (- N 8) 1 serial " + body.format(f"(where (= {x} {x}) {x} {none})").replace("FN", fn) + "))")
    assert line.replace("SYM", symbol) in text
    kept = rendered("(for i 0 M 1 serial (for j 0 (- N 8) 1 serial " + body.format(x).replace("FN", fn) + "))")
    assert f"ct_{fn}_f32" in kept


def test_a_nest_that_adds_to_a_register_tile_asks_first_whether_the_loops_inside_run() -> None:
    """Otherwise clang copies the accumulators after each of them. An extent that changes in the nest is not asked for, nor a constant one."""
    nest = """(loop Op (buffer Y f32 (M) (0) inout) (buffer X f32 (M N) (0 1) in) (size M) (size N)
      (kernel main (local A f32 (8) {space}) (setf (vref A 8 (0)) (splat 8 0.0))
        (for i 0 M 1 serial (for j 0 {hi} 1 serial (incf (vref A 8 (0)) (splat 8 (aref X i {j})))))
        (setf (aref Y 0) (aref A 0))))"""
    texts = {(space, hi): CStyle().render(program(nest.format(space=space, hi=hi, j="(min j (- N 1))" if hi in ("4", "(+ i 1)") else "j")))
             for space, hi in (("register", "N"), ("stack", "N"), ("register", "4"), ("register", "(+ i 1)"))}
    assert {key: "if (0 < N) {" in text for key, text in texts.items()} == {
        ("register", "N"): True, ("stack", "N"): False, ("register", "4"): False, ("register", "(+ i 1)"): False}
