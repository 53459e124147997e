"""Specs whose proofs are hard: windows that slide, arrays that are changed in place and read mirrored. Each is
scheduled in seconds, however it is written; some took minutes, or for ever, inside a decision procedure. And specs that
are large: bodies of a thousand operators or statements, and programs of many nests, are scheduled like small ones, in
time that grows with them."""
from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
import schedule_nets

from caten import driver, loading
from caten.core.expr import Const, Expr, Op
from caten.core.node import substitute
from caten.frontend.spec_files import SpecText
from caten.loop.statements import Aref, Incf, LoopProgram, Setf, Vref
from caten.options import Options
from caten.schedule import script
from caten.schedule.primitives import vectorize
from pace import slowness

SECONDS = 6.0
OPTIONS = Options(runtime="gcc", config=(("MARCH", "x86-64-v3"),))


def spec(inputs: list[str], outputs: list[str], code: str) -> str:
    def quoted(names: list[str]) -> str:
        return ", ".join(f'"{n}"' for n in names)
    return f'[composite]\nname = "Hard"\ninputs = [{quoted(inputs)}]\noutputs = [{quoted(outputs)}]\n[implementation]\ncode = """{code}"""\n'


def pooling(rng: random.Random) -> str:
    """A window over two axes, its steps and distances as numbers, the extents of the picture as sums."""
    (step, other), (apart, wide), (lines, columns) = [(rng.randint(1, 3), rng.randint(1, 3)) for _ in range(3)]
    extents = " ".join(f"(+ (* {s} {n}) {rng.choice([f'(* {k - 1} {d})', str((k - 1) * d + s)])})"
                       for s, n, k, d in ((step, "O", lines + 1, apart), (other, "P", columns + 1, wide)))
    kind = rng.choice(["float", "int8", "int32"])
    order = rng.choice(["", "<1 0 2>()", "<2 0 1>()"])
    return spec([f"X{{{kind}}}[B {extents}]{order}", f"Y{{{kind}}}[B O P]"], ["Y"], f"""
(dotimes (b B) (dotimes (x O) (dotimes (y P) (dotimes (u {lines + 1}) (dotimes (v {columns + 1})
  ({rng.choice(['maxcf', 'mincf', 'incf'])} (aref Y b x y) (aref X b (+ (* {step} x) (* {apart} u)) (+ (* {other} y) (* {wide} v)))))))))""")


def in_place(rng: random.Random) -> str:
    """Nests over the same arrays, whose places move in both directions."""
    def place(var: str) -> str:
        return rng.choice([f"(+ {var} {rng.randint(0, 7)})", f"(- (+ N {rng.randint(0, 6)}) {var})",
                           str(rng.randint(0, 7))])

    def element(i: str, j: str) -> str:
        return f"(aref {rng.choice('AB')} {place(i)} {place(j)})"
    nests = " ".join(f"(dotimes (i{n} {rng.choice(['N', '(- N 1)'])}) (dotimes (j{n} N) ({rng.choice(['incf', 'mincf', 'setf'])} "
                     f"{element(f'i{n}', f'j{n}')} (- {element(f'i{n}', f'j{n}')} {element(f'i{n}', f'j{n}')}))))"
                     for n in range(rng.randint(1, 3)))
    kind = rng.choice(["float", "int8", "int16"])
    arrays = [f"{name}{{{kind}}}[(+ N 8) (+ N 8)]{rng.choice(['', '<1 0>()'])}" for name in "AB"]
    return spec(["z{int8}[N]", *arrays], ["A", "B"], f"{nests} (incf (aref A 0 0) 1) (incf (aref B 0 0) 1)")


def convolution(rng: random.Random) -> str:
    """A padded window of a length that only the call knows, or a number; conditions in two spellings."""
    def inside(x: str, extent: str) -> str:
        both = f"(<= 0 {x}) (< {x} {extent})" if rng.random() < 0.5 else f"(>= {x} 0) (< {x} {extent})"
        return f"(when (and {both})"
    window, wide = [rng.choice(["R", "R", "1", "3", "5"]) for _ in range(2)]
    place = f"(- (+ (* {rng.randint(1, 2)} x) (* {rng.randint(1, 3)} u)) {rng.randint(0, 3)})"
    column = f"(- (+ y (* {rng.randint(1, 3)} v)) {rng.randint(0, 3)})"
    order = rng.choice(["<0 1 2 3>()", "<1 0 3 2>()", "<3 2 1 0>()"])
    return spec(["X{float}[B C H W]", f"V{{float}}[F C {window} {wide}]", "zr{float}[R]",
                 f"Y{{float}}[B F O P]{order}"], ["Y"], f"""
(dotimes (b B) (dotimes (o F) (dotimes (x O) (dotimes (y P) (dotimes (c C) (dotimes (u {window}) (dotimes (v {wide})
  {inside(place, 'H')} {inside(column, 'W')} (incf (aref Y b o x y) (* (aref X b c {place} {column}) (aref V o c u v))))))))))))""")


def condition_on_the_result(rng: random.Random) -> str:
    """A sum of what it does not index, under a condition that some of its copies decide."""
    loops = ["(dotimes (i N)", "(dotimes (j M)", "(dotimes (k K)"]
    rng.shuffle(loops)
    what = rng.choice(["(aref A i)", "(aref A j)", "(aref A 0)"])
    cond = rng.choice([f"(< i (- N {rng.randint(1, 3)}))", f"(< j (- M {rng.randint(1, 3)}))", "(/= i 0)", "(= j 0)"])
    return spec(["A{float}[(max N M)]", "B{float}[N M]", "zk{int8}[K]"], ["B"],
                f"{' '.join(loops)} (when {cond} ({rng.choice(['incf', 'mincf', 'maxcf'])} (aref B i j) {what}))" + ")"
                * 3)


@pytest.mark.slice(2)
@pytest.mark.parametrize("family", [pooling, in_place, convolution, condition_on_the_result], ids=lambda f: f.__name__)
@pytest.mark.slow
def test_hard_specs_are_scheduled_soon(family: object, nightly: bool) -> None:
    for seed in range(150 if nightly else 3):
        text = family(random.Random(seed))  # type: ignore[operator]
        started = time.process_time()
        for program in loading.load_programs(SpecText(f"seed {seed}", text), OPTIONS):
            driver.advance(program, "loop", OPTIONS)
        took = time.process_time() - started
        assert took < SECONDS or took < SECONDS * slowness(), f"{took:.1f} s for seed {seed}:\n{text}"


FUNCTIONS = ("+", "*", "-", "max")


def nested(count: int) -> str:
    """One expression, nested on the left, which reads two elements over and over."""
    begins = "".join([f"({FUNCTIONS[n % 4]} " for n in range(count)])
    ends = "".join([" 0.5)" if n % 5 == 0 else f" (aref {'XZ'[n % 2]} i))" for n in range(count)])
    return spec(["X{float}[N]", "Z{float}[N]"], ["Y{float}[N]"],
                f"(dotimes (i N) (setf (aref Y i) {begins}(aref X i){ends}))")


def whole(count: int) -> str:
    """That of whole numbers, which may wrap."""
    return nested(count).replace("{float}", "{int32}").replace("0.5", "3")


def shared(count: int) -> str:
    """One expression of parts that are used twice: written out, exponentially large."""
    pairs = " ".join([f"(x{n + 2} ({FUNCTIONS[n % 4]} x{n + 1} x{n}))" for n in range(count)])
    return spec(["X{float}[N]", "Z{float}[N]"], ["Y{float}[N]"],
                f"(dotimes (i N) (setf (aref Y i) (let* ((x0 (aref X i)) (x1 (aref Z i)) {pairs}) x{count + 1})))")


def summed(count: int) -> str:
    """A sum of a large expression."""
    product = "(max " * count + "(aref A i j)" + " (aref B i j))" * count
    return spec(["A{float}[N M]", "B{float}[N M]"], ["Y{float}[N]"],
                f"(dotimes (i N) (setf (aref Y i) 0) (dotimes (j M) (incf (aref Y i) {product})))")


def rows(count: int) -> str:
    """Statements that each store to another row."""
    stores = " ".join([f"(setf (aref Y {n} i) (* {n % 9}.5 (+ (aref X i) (aref Z i))))" for n in range(count)])
    return spec(["X{float}[N]", "Z{float}[N]"], [f"Y{{float}}[{count} N]"], f"(dotimes (i N) {stores})")


def added(count: int) -> str:
    """Statements that add to one element."""
    return spec(["X{float}[N]"], ["Y{float}[N]"], "(dotimes (i N) (setf (aref Y i) 0) " + " ".join(
        [f"(incf (aref Y i) (* {n}.5 (aref X i)))" for n in range(count)]) + ")")


def locals_(count: int) -> str:
    """Statements that each use the local before."""
    sets = " ".join([f"(set v{n + 1} ({FUNCTIONS[n % 4]} v{n} (aref {'XZ'[n % 2]} i)))" for n in range(count)])
    return spec(["X{float}[N]", "Z{float}[N]"], ["Y{float}[N]"],
                f"(dotimes (i N) (set v0 (aref X i)) {sets} (setf (aref Y i) v{count}))")


def nests(count: int) -> str:
    """Loops one after the other."""
    loops = " ".join([f"(dotimes (i{n} N) (setf (aref Y {n} i{n}) (* {n}.5 (+ (aref X i{n}) (aref Z i{n})))))"
                      for n in range(count)])
    return spec(["X{float}[N]", "Z{float}[N]"], [f"Y{{float}}[{count} N]"], loops)


def scheduled(text: str) -> tuple[LoopProgram, float]:
    """The loops, and the seconds that it took."""
    started, warned = time.process_time(), []
    (program,) = loading.load_programs(SpecText("large", text), OPTIONS)
    made = driver.advance(program, "loop", OPTIONS, warned.append)
    assert isinstance(made, LoopProgram)
    driver.render([made], OPTIONS)
    assert not warned
    return made, time.process_time() - started


@pytest.mark.slice(4)
@pytest.mark.parametrize("family", [nested, whole, shared, summed, rows, added, locals_, nests],
                         ids=lambda f: f.__name__)
@pytest.mark.slow
def test_large_specs_are_scheduled_as_vectors_in_time_that_grows_with_them(family: Callable[[int], str],
                                                                           nightly: bool) -> None:
    scheduled(family(8))                                         # what only the first one needs
    small, large = (1000, 10_000) if nightly and family in (nested, whole, shared,
                                                            summed) else (40, 160) if family is nests else (100, 400)
    few, (program, many) = scheduled(family(small))[1], scheduled(family(large))
    for _ in range(2):                                           # measured again where something else took the time
        if many < 2 * (large / small) * few:
            break
        few, many = min(few, scheduled(family(small))[1]), min(many, scheduled(family(large))[1])
    stores = [s for s in program.unique() if isinstance(s, Setf | Incf) and isinstance(s.ref, Aref) and s.ref.index]
    wide = [s for s in program.unique() if isinstance(s, Setf | Incf) and isinstance(s.ref, Vref)]
    assert wide
    # a sum goes to one element; short rows
    assert family is summed or (len(stores) <= len(wide) if family in (rows, nests) else not stores), stores[:3]
    assert many < 2 * (large / small) * few, f"{large} take {many:.2f} s, {small} took {few:.2f}"


def test_vectors_of_a_value_that_shares_parts_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below 0 in six conditions, each of what the one before gives: 3^6 ways to the one element that is read."""
    made_at = list[object]()
    place = vectorize._Widening.place
    monkeypatch.setattr(vectorize._Widening, "place", lambda self, ref, mask: made_at.append(ref) or place(self, ref, mask))
    before = schedule_nets.program("(for o 0 (floordiv N 8) 1 serial (for i 0 8 1 serial (setf (aref v (+ (* 8 o) i)) (aref u (+ (* 8 o) i)))))")
    element = next(n for n in before.unique() if isinstance(n, Aref) and n.buffer == "u")
    made: Expr = element
    for _ in range(6):
        made = Op("where", (made < Const(0.0, "f32"), made * made, made + made))
    after = script.apply(substitute(before, {element: made}), (("vectorize", "i"),))
    assert [n.mask for n in after.unique() if isinstance(n, Vref) and n.buffer == "u"] == [None]
    assert made_at.count(element) == 1


def test_what_is_known_in_one_loop_says_nothing_of_a_load_after_it() -> None:
    """The first row of A, which has one only in a loop over its rows: there it may be read in every lane."""
    before = schedule_nets.program("""(for o 0 (floordiv N 8) 1 serial (for i 0 8 1 serial
      (for m 0 M 1 serial (if (< (aref u (+ (* 8 o) i)) 0.0:f32) ((setf (aref X m (+ (* 8 o) i)) (aref A 0 (+ (* 8 o) i))))))
      (if (and (< 0 M) (< (aref u (+ (* 8 o) i)) 0.0:f32)) ((setf (aref v (+ (* 8 o) i)) (aref A 0 (+ (* 8 o) i)))))))""")
    after = script.apply(before, (("vectorize", "i"),))
    assert sorted([n.mask is None for n in after.unique() if isinstance(n, Vref) and n.buffer == "A"]) == [False, True]


def test_a_condition_of_nested_choices_is_computed_once() -> None:
    """What chooses among several arrays is needed under its own outcome, too: of a chain of n choices 2ⁿ times, if each
    had a value for its mask."""
    code = "q = np.rint(np.arctan2(np.pad(X, ((K, L), (P, Q))), Y) * 3)\nZ = np.pad(X, ((L, K), (Q, P)))\n"
    code += "return np.select([q == n for n in range(5)], [Z * n for n in range(5)], Y)"
    shape = "[(+ M (+ K L)) (+ N (+ P Q))]"
    inputs = ["X{float}[M N]", f"Y{{float}}{shape}", *[f"{name.lower()}{{float}}[{name}]" for name in "KLPQ"]]
    text = f'[composite]\nname = "Chosen"\ninputs = {inputs}\noutputs = ["R{{float}}{shape}"]\n[implementation]\nlang = "python"\ncode = """{code}"""\n'
    (program,) = loading.load_programs(SpecText("<text>", text, "toml"), OPTIONS)
    planned = driver.advance(program, "loop", OPTIONS)
    assert isinstance(planned, LoopProgram)
    vectors = [s for s in planned.kernels[0].walk() if isinstance(s, Setf) and s.value.lanes > 1]
    assert vectors
    assert all(sum(isinstance(n, Op) and n.fn == "atan2" for n in s.value.unique()) == 1 for s in vectors)


def test_choices_by_floats_that_hold_each_other_are_simplified_once() -> None:
    """Each step of an iteration that may have ended holds the one before twice: 2ⁿ parts, if each had its own outcome
    of all conditions around it."""
    code = "z, n = X * 0, np.zeros(len(X), int)\nfor _ in range(30):\n    live = np.abs(z) <= 2\n    z = np.where(live, z * z + X, z)\n    n += live\nreturn n"
    text = f'[composite]\nname = "Escape"\ninputs = ["X{{complex128}}[N]"]\noutputs = ["Y{{int}}[N]"]\n[implementation]\nlang = "python"\ncode = """{code}"""\n'
    (program,) = loading.load_programs(SpecText("<text>", text, "toml"), OPTIONS)
    start = time.process_time()
    driver.advance(program, "loop", OPTIONS)
    assert time.process_time() - start < SECONDS / 3 * slowness()
