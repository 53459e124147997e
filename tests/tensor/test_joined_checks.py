"""Checks over the same extents that are one reduction: which are joined, and that a call reports what it reported before."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.core.program import Check
from caten.core.text import read, show
from caten.errors import CatenError
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.semantics import interpret
from caten.tensor import tensor_verifier
from caten.tensor.before_fusion import ready_for_fusion
from caten.tensor.blocks_of_rows import BLOCKS
from caten.tensor.fusion import kernels_of
from caten.tensor.lower import lower
from caten.tensor.values import Compute, Define, Nest, Reduce, TensorProgram, operands_of, reads_of


def gather(n: int, size: str = "N") -> tuple[str, str, str]:
    """Inputs, outputs and loops of a gather from a table of its own."""
    return f"x{n}{{float}}[M{n}] k{n}{{int64}}[{size}]", f"y{n}{{float}}[{size}]", f"(dotimes (i{n} {size}) (setf (aref y{n} i{n}) (aref x{n} (aref k{n} i{n}))))"


def triangle(n: int, side: str = "<") -> tuple[str, str, str]:
    """A gather that goes over half of the loops."""
    at = f"(+ (aref k{n} i{n}) j{n})"
    return (f"x{n}{{float}}[M{n}] k{n}{{int64}}[N] y{n}{{float}}[N N]", f"y{n}",
            f"(dotimes (i{n} N) (dotimes (j{n} N) (if ({side} j{n} i{n}) (setf (aref y{n} i{n} j{n}) (aref x{n} {at})))))")


def two_gathers(n: int) -> tuple[str, str, str]:
    """Two checks in the same loops, of which one finds the least that fails."""
    given, out, _ = gather(n)
    return (f"{given} z{n}{{float}}[L{n}]", out, f"(dotimes (i{n} N) (setf (aref y{n} i{n}) (+ (aref x{n} (aref k{n} i{n})) (aref z{n} (aref k{n} i{n})))))")


def store(n: int) -> tuple[str, str, str]:
    """A nest that fails by itself."""
    return f"k{n}{{int64}}[N] y{n}{{float}}[M{n}]", f"y{n}", f"(dotimes (i{n} N) (setf (aref y{n} (aref k{n} i{n})) 1.0))"


def histogram(n: int) -> tuple[str, str, str]:
    """A scatter that makes its check in its loop."""
    return f"k{n}{{int64}}[N] y{n}{{float}}[M{n}]", f"y{n}", f"(dotimes (i{n} N) (incf (aref y{n} (aref k{n} i{n})) 1.0))"


def element(n: int) -> tuple[str, str, str]:
    """One element, at an index that is read: a check without loops."""
    return f"x{n}{{float}}[M{n}] k{n}{{int64}}[1]", f"y{n}{{float}}[1]", f"(setf (aref y{n} 0) (aref x{n} (aref k{n} 0)))"


def awaited(n: int) -> tuple[str, str, str]:
    """Indices that are computed before they are checked: sums of rows."""
    return (f"x{n}{{float}}[M{n}] k{n}{{int64}}[N 3] s{n}{{int64}}[N]", f"y{n}{{float}}[N] s{n}",
            f"(dotimes (h{n} N) (dotimes (g{n} 3) (incf (aref s{n} h{n}) (aref k{n} h{n} g{n}))))"
            f"(dotimes (i{n} N) (setf (aref y{n} i{n}) (aref x{n} (aref s{n} i{n}))))")


def spec(parts: list[tuple[str, str, str]]) -> str:
    inputs, outputs, loops = (" ".join(each) for each in zip(*parts, strict=True))
    return f"(composite Pieces (({inputs}) -> ({outputs})) {loops})"


def values(text: str, opt: int = 2) -> TensorProgram:
    """The program of values of a spec."""
    options = Options(opt=opt)
    (loaded,) = loading.load_programs(SpecText("pieces.lisp", text, "lisp"), options)
    made = driver.advance(loaded, "tensor", options)
    assert isinstance(made, TensorProgram)
    return made


def ready(program: TensorProgram) -> TensorProgram:
    made = ready_for_fusion(program)
    tensor_verifier.verify(made)
    assert show(read(show(made))[0]) == show(made)
    assert ready_for_fusion(made) is made, "there is nothing more to join"
    return made


def checking(program: TensorProgram) -> list[Reduce | Compute]:
    """The values that checks need."""
    needed = {r.buffer for c in program.checks for r in reads_of(c.cond)}
    return [d.value for d in program.definitions if d.name in needed and isinstance(d.value, Reduce | Compute)]


def test_two_gathers_over_one_extent_have_one_check() -> None:
    program = values(spec([gather(0), gather(1)]))
    assert len(checking(program)) == 2
    made = ready(program)
    rows = [c.row for c in made.checks]
    found = " ".join(show(made, 1 << 20).split())
    one, two = (f"(or (< (read k{n} p) 0) (<= M{n} (read k{n} p)))" for n in range(2))
    assert f"(define v0 (reduce i64 () ((p N)) min true (where {one} {rows[0]} (where {two} {rows[1]} {(1 << 63) - 1}))))" in found
    assert found.count("(define ") == 3
    assert all(f"(fail-if (= (read v0) {row}) {row})" in found for row in rows)


@pytest.mark.parametrize(("parts", "count"), [
    ([gather(0), gather(1), gather(2)], 1),
    ([two_gathers(0), gather(1), two_gathers(2)], 1),
    ([gather(0, "N"), gather(1, "L")], 2),                                  # other extents
    ([gather(0, "N"), gather(1, "L"), gather(2, "N")], 3),                  # the second one fails before the third
    ([gather(0), triangle(1)], 2),
    ([triangle(0), triangle(1)], 1),
    ([triangle(0), triangle(1, ">")], 2),                                   # other conditions
    ([element(0), element(1)], 1),                                          # without loops
    ([gather(0), element(1)], 2),
    ([gather(0), awaited(1)], 2),                                           # the sums are computed after the first check
    ([histogram(0), gather(1)], 2),                                         # one is made in the loop of the scatter
    ([histogram(0), gather(1), gather(2)], 2),
    ([gather(n) for n in range(20)], 2),                                    # more than a reduction takes
])
def test_which_checks_are_joined(parts: list[tuple[str, str, str]], count: int) -> None:
    program = ready(values(spec(parts)))
    assert len(checking(program)) == count
    names = {r.buffer for c in program.checks for r in reads_of(c.cond)}
    assert sum([any(m.name in names for m in getattr(k, "members", ())) for k in kernels_of(program)]) == count


def test_a_value_that_a_request_names_stays() -> None:
    text = """
[composite]
name = "G"
inputs = ["x{float}[M]", "k{int64}[N]", "h{int64}[N]", "t{float}[L]"]
outputs = ["y{float}[N]", "z{float}[N]"]
[implementation]
lang = "lisp"
code = "(dotimes (i N) (setf (aref y i) (aref x (aref k i)))) (dotimes (j N) (setf (aref z j) (aref t (aref h j))))"
"""
    for more, count in (("", 1), ('[schedule]\nfusion = "(keep v0)"\n', 2)):
        (loaded,) = loading.load_programs(SpecText("g.toml", text + more), Options())
        program = driver.advance(loaded, "tensor", Options())
        assert isinstance(program, TensorProgram)
        assert len(checking(ready_for_fusion(program))) == count


PIECES = (gather, gather, gather, two_gathers, store, histogram, element, awaited, lambda n: gather(n, "K"), triangle)


def shuffled(program: TensorProgram, rng: np.random.Generator) -> TensorProgram:
    """The program with its values in another order, each after those that it reads."""
    left, placed = list(program.definitions), list[Define]()
    while left:
        missing = {name for d in left for name in d.names}
        ready_ones = [d for d in left if missing.isdisjoint(operands_of(d.value))]
        placed.append(ready_ones[rng.integers(len(ready_ones))])
        left.remove(placed[-1])
    before = program.clauses.index(program.definitions[0])
    rest = [c for c in program.clauses[before:] if not isinstance(c, Define)]
    return program.replace(clauses=(*program.clauses[:before], *placed, *rest))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_a_call_fails_with_the_check_with_which_it_failed_before(seed: int) -> None:
    """Drawn sequences of operators, with drawn indices outside. The checks are joined in one form of the program and not in the other."""
    rng = np.random.default_rng(seed)
    parts = [PIECES[rng.integers(len(PIECES))](n) for n in range(rng.integers(2, 7))]
    program = values(spec(parts))
    if seed % 2:
        program = shuffled(program, rng)
        tensor_verifier.verify(program)
    plain, joined = lower(program), lower(program, blocks=BLOCKS)
    sizes: dict[str, Any] = {s: int(rng.integers(1, 7)) for s in program.sizes}
    for _ in range(25):
        arguments = dict(sizes)
        for name, b in program.buffers.items():
            shape = [sizes.get(str(show(e)), 0) or int(show(e)) for e in b.axes]
            arguments[name] = rng.random(shape, np.float32) if b.type == "f32" else np.zeros(shape, np.int64)
            if name.startswith("k") and arguments[name].size and rng.random() < 0.35:
                arguments[name].flat[rng.integers(arguments[name].size)] = rng.choice([-1, 7, 1 << 40, -(1 << 40)])
        one, two = ({n: np.copy(a) if isinstance(a, np.ndarray) else a for n, a in arguments.items()} for _ in range(2))
        rows = interpret.run(plain, one), interpret.run(joined, two)
        assert rows[0] == rows[1]
        assert rows[0] or all(np.array_equal(one[n], two[n]) for n in program.buffers)


def test_what_can_fail_between_two_checks_keeps_them_apart() -> None:
    """A nest that is written between them, as a text may have it, fails before the second one."""
    program = values(spec([gather(0), gather(1), store(2)]))
    (nest,) = [d for d in program.definitions if isinstance(d.value, Nest)]
    first, second, *maps = [d for d in program.definitions if d is not nest]
    assert len(checking(ready(program))) == 1
    rest = [c for c in program.clauses if not isinstance(c, Define)]
    at = program.clauses.index(program.definitions[0])
    between = program.replace(clauses=(*rest[:at], first, nest, second, *maps, *rest[at:]))
    assert len(checking(ready(between))) == 2
    for bad in (("k1",), ("k1", "k2"), ("k0", "k1", "k2")):
        arguments: dict[str, Any] = {"N": 3, "M0": 4, "M1": 5, "M2": 6}
        arguments |= {f"x{n}": np.zeros(4 + n, np.float32) for n in range(2)} | {f"y{n}": np.zeros(3 if n < 2 else 6, np.float32) for n in range(3)}
        arguments |= {f"k{n}": np.array([0, 7 if f"k{n}" in bad else 1, 2]) for n in range(3)}
        one, two = ({n: np.copy(a) if isinstance(a, np.ndarray) else a for n, a in arguments.items()} for _ in range(2))
        assert interpret.run(lower(between), one) == interpret.run(lower(between, blocks=BLOCKS), two) > 0


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("seed", range(3))
def test_the_first_check_in_the_spec_is_the_one_that_is_reported(seed: int, opt: int, threads: bool) -> None:
    """Of drawn sizes, one of them so large that threads share the reduction."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 5))
    made = caten.compile(spec([gather(n) for n in range(count)]), runtime="gcc", opt=opt, config={"OMP": 1} if threads else None)
    for size in (1, int(rng.integers(2, 100)), int(rng.integers(1000, 5000)), int(rng.integers(140_000, 300_000))):
        tables = [rng.random(int(rng.integers(1, 50)), np.float32) for _ in range(count)]
        for bad in [set(), *[set(rng.choice(count, rng.integers(1, count + 1), replace=False).tolist()) for _ in range(4)]]:
            indices = [rng.integers(0, len(t), size) for t in tables]
            for n in bad:
                indices[n][rng.integers(size)] = rng.choice([-1, len(tables[n]), 1 << 40])
            given = [a for pair in zip(tables, indices, strict=True) for a in pair]
            if not bad:
                for y, t, k in zip(made(*given), tables, indices, strict=True):
                    np.testing.assert_array_equal(y, t[k])
                continue
            with pytest.raises(CatenError) as caught:
                made(*given)
            first = min(bad)
            assert f"(aref x{first} (aref k{first} i{first})): index 1 (= (aref k{first} i{first})) is outside [0, M{first})" in str(caught.value)


def test_each_check_has_its_message() -> None:
    """Joined checks keep their rows."""
    program = values(spec([two_gathers(0), gather(1)]))
    texts = {c.row: c.text for c in program.all(Check)}
    before, after = ([(c.row, texts[c.row]) for c in p.checks] for p in (program, ready(program)))
    assert before == after
    assert len(after) == 3
