"""Copies that turn rows into columns: which nests they are, what they become, and that they mean the same."""
from __future__ import annotations

import itertools
import random

import pytest
from schedule_nets import assert_same, assert_sound, program

from caten import driver, loading
from caten.core.program import Schedule
from caten.core.text import show
from caten.frontend.spec_files import SpecText
from caten.loop.statements import LoopProgram, Setf, Transpose
from caten.options import Options
from caten.schedule import autoscheduler, script
from caten.schedule.analysis.loop_queries import loops_in
from caten.schedule.plans.parameters import Parameter

AVX2 = '(opt 2) (target "clang" (machine x86_64_v3 32 16 (32768 524288) true))'
AVX512 = '(opt 2) (target "clang" (machine x86_64_v4 64 32 (32768 1048576) true))'
SSE = '(opt 2) (target "clang" (machine x86_64 16 16 (32768 524288) false))'
SIZES = ((0, 0, 0), (1, 1, 1), (17, 9, 2), (8, 16, 3), (35, 66, 1))


def copy(to: str, of: str, order: str, dtype: str = "f32", machine: str = AVX2) -> LoopProgram:
    """B[to] = A[of] in loops in that order; loop i runs over L, j over M, k over N."""
    extents = {"i": "L", "j": "M", "k": "N"}
    text = f"(setf (aref B {' '.join(to)}) (aref A {' '.join(of)}))"
    for name in reversed(order):
        text = f"(for {name} 0 {extents[name]} 1 serial {text})"
    shapes = [" ".join(extents[n] for n in axes) for axes in (of, to)]
    orders = [" ".join(map(str, range(len(axes)))) for axes in (of, to)]
    params = "".join(f"(size {e})" for n, e in extents.items() if n in of)
    buffers = f"(buffer A {dtype} ({shapes[0]}) ({orders[0]}) in) (buffer B {dtype} ({shapes[1]}) ({orders[1]}) out)"
    return program(text, f"{params} {buffers}", machine)


def scheduled(before: LoopProgram) -> LoopProgram:
    after = autoscheduler.schedule(before)
    assert_sound(after)
    fact = after.first(Schedule)
    assert fact is not None
    assert script.apply(before, script.parse_schedule(show(fact)).steps) is after
    return after


def blocks(node: LoopProgram) -> list[Transpose]:
    return [n for k in node.kernels for n in k.unique() if isinstance(n, Transpose)]


@pytest.mark.parametrize("order", ["ij", "ji"])
@pytest.mark.parametrize(("dtype", "machine", "lanes"), [
    ("f32", AVX512, 16), ("f32", AVX2, 8), ("f32", SSE, 4), ("f64", AVX512, 8), ("i64", AVX2, 4), ("c64", AVX2, 4),
                                                         ("i16", AVX2, 16), ("u8", AVX2, 16)])
def test_a_transposition_is_blocks_in_registers(order: str, dtype: str, machine: str, lanes: int) -> None:
    after = scheduled(copy("ji", "ij", order, dtype, machine))
    assert {(b.ref.count, b.value.count) for b in blocks(after)} == {(lanes, lanes)}
    assert [loop.name
            for loop in loops_in(after) if loop.mark == "parallel"] == (["io"] if dtype == "c64" else ["iso", "io"])


@pytest.mark.slice(2)
@pytest.mark.parametrize(("to", "of"),
                         [(a, b) for a, b in itertools.product(["".join(p) for p in itertools.permutations("ijk")],
                                                               repeat=2) if a[-1] != b[-1]])
@pytest.mark.slow
def test_every_permutation_of_three_axes(to: str, of: str) -> None:
    before = copy(to, of, to)
    after = scheduled(before)
    assert blocks(after)
    threads = [loop.name for loop in loops_in(after) if loop.mark == "parallel"]
    (unmoved,) = set(to) - {to[-1], of[-1]}
    # two axes that follow each other in both arrays, and end the one stored, are one
    pair = f"{to[1:]}o"
    assert threads == ([f"{to[1:]}so", pair] if to[1:] in of else [f"{unmoved}s", unmoved])
    assert_same(before, after, ((2, 3, 5), (9, 8, 10)))


@pytest.mark.parametrize("sizes", [*SIZES, (130, 70, 1)])
def test_edges_of_every_kind(sizes: tuple[int, int, int]) -> None:
    before = copy("ji", "ij", "ij", "f32", AVX512)
    assert_same(before, scheduled(before), (sizes[:2],), may_be_idle=0 in sizes[:2])


@pytest.mark.parametrize("extents", [(64, 64), (16, 5), (3, 4), (40, 40)])
def test_constant_sizes(extents: tuple[int, int]) -> None:
    m, n = extents
    before = program(f"(for i 0 {m} 1 serial (for j 0 {n} 1 serial (setf (aref B j i) (aref A i j))))",
                     f"(buffer A f32 ({m} {n}) (0 1) in) (buffer B f32 ({n} {m}) (0 1) out)", AVX2)
    assert_same(before, scheduled(before), ((),))


def streamed(node: LoopProgram) -> list[Setf]:
    return [n for k in node.kernels for n in k.unique() if isinstance(n, Setf) and n.how]


@pytest.mark.parametrize("sizes", [(300, 20, 1), (257, 19, 1), (300, 70, 1)])
def test_what_no_cache_holds_is_stored_past_them(monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int, int]) -> None:
    monkeypatch.setattr("caten.schedule.plans.transposes.FITS", Parameter("transposes.fits", (), 0))
    before = copy("ji", "ij", "ij", "f32", AVX512)
    after = scheduled(before)
    assert [show(store.ref)
            for store in streamed(after)] == ["(vref B 16 ((+ (* 32 jso) jsi) (+ (* 256 iso) (* 16 isio))))"]
    assert len(blocks(after)) == 2
    assert_same(before, after, (sizes[:2],))


@pytest.mark.parametrize(("extents", "past"), [((4096, 4096), True), ((64, 4096), False), ((100, 1000000), False)])
def test_constant_sizes_need_one_nest(extents: tuple[int, int], past: bool) -> None:
    m, n = extents
    after = scheduled(program(f"(for i 0 {m} 1 serial (for j 0 {n} 1 serial (setf (aref B j i) (aref A i j))))",
                              f"(buffer A f32 ({m} {n}) (0 1) in) (buffer B f32 ({n} {m}) (0 1) out)", AVX512))
    assert len(blocks(after)) == 1
    assert bool(streamed(after)) is past


@pytest.mark.parametrize(("of", "to", "statement"), [
    ("M N", "M N", "(setf (aref B i j) (aref A i j))"),
    ("M N", "N M", "(setf (aref B j i) (* 2.0 (aref A i j)))"),
    ("M N", "N M", "(incf (aref B j i) (aref A i j))"),
    ("M N", "N", "(setf (aref B j) (aref A i j))"),
])
def test_other_nests_are_none(of: str, to: str, statement: str) -> None:
    axes = {"M N": "0 1", "N M": "0 1", "N": "0"}
    before = program(f"(for i 0 M 1 serial (for j 0 N 1 serial {statement}))",
                     f"(size M) (size N) (buffer A f32 ({of}) ({axes[of]}) in) (buffer B f32 ({to}) ({axes[to]}) inout)", AVX2)
    assert not blocks(autoscheduler.schedule(before))


def random_blocks(rng: random.Random) -> tuple[LoopProgram, LoopProgram]:
    """A copy between parts of two arrays of two or three axes, and the same with blocks of random lengths in the middle
    of it."""
    rows, columns = rng.choice((2, 4, 6, 8, 12)), rng.choice((2, 4, 6, 10))
    first, last = [(lo, lo + length * rng.randrange(1, 3) + rng.randrange(2))
                   for lo, length in ((rng.randrange(4), rows), (rng.randrange(4), columns))]
    shift, extra = rng.randrange(3), rng.random() < 0.5
    k, around = ("k ", "(for k 0 3 1 serial {})") if extra else ("", "{}")
    copying = f"(setf (aref B (+ j {shift}) {k}i) (aref A {k}(+ i {shift}) j))"
    nest = f"(for i {first[0]} {first[1]} 1 serial (for j {last[0]} {last[1]} 1 serial {copying}))"
    m, n = first[1] + shift, last[1] + shift
    axes, three = ("(0 1 2)", "3 ") if extra else ("(0 1)", "")
    before = program(around.format(nest),
                     f"(buffer A i32 ({three}{m} {n}) {axes} in) (buffer B i32 ({n} {three}{m}) {axes} inout)")
    steps = [("split", "i", rows), ("reorder", "j", "ii"), ("split", "j", columns), ("transpose", "ji", "ii")]
    return before, script.apply(before, steps)


def test_random_blocks_keep_the_meaning(nightly: bool) -> None:
    for seed in range(200 if nightly else 30):
        before, after = random_blocks(random.Random(seed))
        assert blocks(after)
        assert_sound(after)
        assert_same(before, after, ((),), seed)


@pytest.mark.parametrize(("kind", "count", "inside"), [
    ("float", 2, True), ("float", 3, True), ("float", 7, True), ("float", 64, False), ("uint8", 4, True), ("uint8", 5, False)])
def test_a_short_axis_of_known_size_is_innermost(kind: str, count: int, inside: bool) -> None:
    """[N 3] -> [3 N]: blocks of a vector by a vector would be empty for the most part."""
    spec = (f'[composite]\nname = "Split"\ninputs = ["x{{{kind}}}[N {count}]"]\noutputs = ["y{{{kind}}}[{count} N]"]\n[implementation]\n'
            f'code = "(dotimes (i N) (dotimes (j {count}) (setf (aref y j i) (aref x i j))))"\n')
    options = Options(config=(("MARCH", "x86_64_v3"),))
    (op,) = loading.load_programs(SpecText("a.toml", spec, "toml"), options)
    made = driver.advance(op, "loop", options)
    fact = made.first(Schedule)
    assert fact is not None
    steps = [step[0] for step in fact.steps]
    assert ("reorder" in steps and "split" not in steps and "transpose" not in steps) == inside
