"""Nests that nobody tuned for, at -O2 beside -O0: `python -m benchmarks.plain [--seed N] [--count N] [--runtimes
clang,gcc] [--json FILE]`.

One thread. The nests are drawn: maps, operands that are repeated, sums along and across rows, softmax, windows, pixels,
of 1 to 4 axes, with last axes that are short, long or constant; bytes computed in wider types, steps through rows,
conditions and triangles. Their two libraries take turns on the same arrays. A
nest counts as slower where -O2 takes 5 % more than -O0 and more than 2 microseconds.
"""
from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import caten
from caten.benchmarking import machine, timing

from . import sampling

SLOWER, SHORTEST = 1.05, 2e-6          # by what -O2 is slower, in calls that take so many seconds
DTYPES = {"float": np.float32, "double": np.float64, "uint8": np.uint8, "int8": np.int8, "int16": np.int16,
          "int32": np.int32}
OF_MAPS = ("float", "double", "uint8", "int16")
Dim = str | int                        # a size, "W-2" for less than that, a number


@dataclass(frozen=True)
class Array:
    """A declared array."""

    name: str
    dtype: str
    dims: tuple[Dim, ...]

    def declared(self) -> str:
        return f'"{self.name}{{{self.dtype}}}[{" ".join(map(spelled, self.dims))}]"'

    def shape(self, sizes: dict[str, int]) -> tuple[int, ...]:
        return tuple([d if isinstance(d, int) else sizes[d.partition("-")[0]] - int(d.partition("-")[2] or 0)
                      for d in self.dims])


@dataclass(frozen=True)
class Nest:
    """A spec, its arrays, and the sizes that it is called with."""

    family: str
    inputs: tuple[Array, ...]
    output: Array
    body: str
    sizes: dict[str, int]

    def text(self) -> str:
        inputs = ", ".join([a.declared() for a in self.inputs])
        head = f'[composite]\nname = "Drawn"\ninputs = [{inputs}]\noutputs = [{self.output.declared()}]\n'
        return head + f'[implementation]\ncode = """\n{self.body}\n"""\n'


def spelled(dim: Dim) -> str:
    size, minus, less = str(dim).partition("-")
    return f"(- {size} {less})" if minus else size


def nested(dims: tuple[Dim, ...], body: str) -> str:
    """Loops over i, j, k, l around a body."""
    for name, dim in reversed(list(zip("ijkl", dims, strict=False))):
        body = f"(dotimes ({name} {spelled(dim)}) {body})"
    return body


def drawn_dims(rng: Random, least: int = 1) -> tuple[tuple[Dim, ...], dict[str, int]]:
    """Axes of an array and their sizes: the last short, long or constant, the first what is left of a number of
    elements."""
    rank = rng.choice([n for n in (1, 2, 2, 3, 4) if n >= least])
    dims: list[Dim] = list("NHWC"[4 - rank:])
    left, sizes = int(10 ** rng.uniform(2, 5)), {}
    if rank > 1 and rng.random() < 0.3:
        dims[-1] = rng.choice((2, 3, 4, 5, 7))
        left //= dims[-1]
    for dim in reversed([d for d in dims[1:] if isinstance(d, str)]):
        sizes[dim] = min(left, rng.choice((1, 2, 3, 4, 5, 8, 10, 13, 20, 33, 50, 100, 256, 1000)))
        left = max(1, left // sizes[dim])
    if isinstance(dims[0], str):
        sizes[dims[0]] = left
    return tuple(dims), sizes


def applied(rng: Random, dtype: str, x: str) -> str:
    """An operator on one element."""
    plain = ["(max {x} 2)", "(+ {x} 3)", "(* {x} {x})", "(abs {x})"]
    return str(rng.choice(plain + (["(exp (- 0 {x}))", "(tanh {x})", "(* 0.5 {x})"] if dtype in ("float", "double")
                                   else []))).replace("{x}", x)


def maps(rng: Random) -> Nest:
    dims, sizes = drawn_dims(rng)
    dtype, at = rng.choice(OF_MAPS), " ".join("ijkl"[:len(dims)])
    value = applied(rng, dtype, f"(aref X {at})")
    more = (Array("Z", dtype, dims),) if rng.random() < 0.4 else ()
    value = f"(+ {value} (aref Z {at}))" if more else value
    return Nest("map", (Array("X", dtype, dims), *more), Array("Y", dtype, dims),
                nested(dims, f"(setf (aref Y {at}) {value})"), sizes)


def repeated(rng: Random) -> Nest:
    dims, sizes = drawn_dims(rng, 2)
    dtype, at = rng.choice(OF_MAPS), "ijkl"[:len(dims)]
    kept = rng.choice(([len(dims) - 1], [len(dims) - 1], [0], [0, len(dims) - 1]))
    other = Array("B", dtype, tuple([dims[n] for n in dict.fromkeys(kept)]))
    value = applied(rng, dtype, f"(+ (aref X {' '.join(at)}) (aref B {' '.join(at[n] for n in dict.fromkeys(kept))}))")
    body = nested(dims, f"(setf (aref Y {' '.join(at)}) {value})")
    return Nest("repeated operand", (Array("X", dtype, dims), other), Array("Y", dtype, dims), body, sizes)


def row_sums(rng: Random) -> Nest:
    dims, sizes = drawn_dims(rng, 2)
    dtype, at = rng.choice(("float", "float", "double", "int16")), "ijkl"[:len(dims)]
    place, read = f"(aref Y {' '.join(at[:-1])})", f"(aref X {' '.join(at)})"
    word, start = rng.choice((("incf", "0"), ("incf", "0"), ("maxcf", "-100")))
    body = f"(setf {place} {start}) (dotimes ({at[-1]} {dims[-1]}) ({word} {place} {applied(rng, dtype, read)}))"
    return Nest("sums of rows", (Array("X", dtype, dims),), Array("Y", dtype, dims[:-1]), nested(dims[:-1], body),
                sizes)


def column_sums(rng: Random) -> Nest:
    dims, sizes = drawn_dims(rng, 2)
    dims = dims[-2:]
    dtype = rng.choice(("float", "float", "double", "int16"))
    body = f"(dotimes (j {dims[1]}) (setf (aref Y j) 0)) " + nested(dims,
                                                                    f"(incf (aref Y j) "
                                                                    f"{applied(rng, dtype, '(aref X i j)')})")
    return Nest("sums of columns", (Array("X", dtype, dims),), Array("Y", dtype, dims[1:]), body,
                {d: sizes[d] for d in dims if isinstance(d, str)})


def softmax(rng: Random) -> Nest:
    dims, sizes = drawn_dims(rng, 2)
    dims, columns = dims[-2:], dims[-1]
    dtype, loop = rng.choice(("float", "float", "double")), f"(dotimes (j {columns})"
    body = (f"(set m (- inf)) {loop} (maxcf m (aref X i j))) (set s 0.0) {loop} (setf (aref Y i j) (exp (- (aref X i "
            "j) m))) (incf s (aref Y i j))) "
            f"{loop} (setf (aref Y i j) (/ (aref Y i j) s)))")
    return Nest("softmax", (Array("X", dtype, dims),), Array("Y", dtype, dims),
                nested(dims[:1], body.replace("0.0", f"(cast {dtype} 0)").replace(
        "(- inf)", f"(cast {dtype} (- inf))")), {d: sizes[d] for d in dims if isinstance(d, str)})


def windows(rng: Random) -> Nest:
    k, dtype = rng.choice((2, 3, 5)), rng.choice(("float", "float", "double", "int16"))
    sizes = {"H": rng.choice((8, 20, 50, 200)) + k, "W": rng.choice((3, 5, 8, 13, 30, 100, 500)) + k}
    out: tuple[Dim, ...] = (f"H-{k - 1}", f"W-{k - 1}")
    read = f"(aref X (+ i a) (+ j b)){' (aref F a b)' if (filtered := rng.random() < 0.5) else ''}"
    value = f"(* {read})" if filtered else read
    body = nested(out, f"(setf (aref Y i j) 0) (dotimes (a {k}) (dotimes (b {k}) (incf (aref Y i j) {value})))")
    return Nest("window", (Array("X", dtype, ("H", "W")), *([Array("F", dtype, (k, k))] if filtered else [])),
                Array("Y", dtype, out), body, sizes)


def pixels(rng: Random) -> Nest:
    c, dtype = rng.choice((2, 3, 4)), rng.choice(("uint8", "uint8", "float", "int16"))
    sizes = {"H": rng.choice((3, 40, 300)), "W": rng.choice((5, 40, 400))}
    if rng.random() < 0.5:
        terms = " ".join([f"(* {n + 1} (aref X i j {n}))" for n in range(c)])
        body = nested(("H", "W"), f"(setf (aref Y i j) (+ {terms}))")
        return Nest("pixels", (Array("X", dtype, ("H", "W", c)),), Array("Y", dtype, ("H", "W")), body, sizes)
    body = nested(("H", "W", c), f"(setf (aref Y i j k) (aref X i j (- {c - 1} k)))")
    return Nest("pixels", (Array("X", dtype, ("H", "W", c)),), Array("Y", dtype, ("H", "W", c)), body, sizes)


def conversions(rng: Random) -> Nest:
    """Bytes and the like, computed in a wider type and back."""
    dims, sizes = drawn_dims(rng)
    dtype = rng.choice(("uint8", "int8", "int16"))
    wide, at = rng.choice(("int16", "int32", "float") if dtype != "int16" else ("int32", "float")), " ".join(
        "ijkl"[:len(dims)])
    x, z = [f"(cast {wide} (aref {name} {at}))" for name in "XZ"]
    value = rng.choice((f"(+ {x} {z})", f"(- {x} {z})", f"(* {x} {z})", f"(max {x} (* 2 {z}))", f"(abs (- {x} {z}))"))
    ends = ["{v}", "(min (max {v} -100) 100)", "(where (> {v} 7) {v} 3)"]
    ends += ["(* 0.25 {v})"] if wide == "float" else ["(floordiv {v} 5)", "(floordiv {v} 4)", "(mod {v} 9)"]
    value = rng.choice(ends).replace("{v}", value)
    result = rng.choice((dtype, dtype, wide))
    body = nested(dims, f"(setf (aref Y {at}) (cast {result} {value}))")
    return Nest("conversion", (Array("X", dtype, dims), Array("Z", dtype, dims)), Array("Y", result, dims), body, sizes)


def steps(rng: Random) -> Nest:
    """Every second or third element of rows, from one of the first on, or from the end on."""
    dtype, step = rng.choice(("float", "float", "double", "uint8", "int16")), rng.choice((2, 2, 3, -1))
    sizes = {"H": rng.choice((3, 30, 200)), "V": rng.choice((4, 13, 50, 200, 1000))}
    sizes["W"] = abs(step) * sizes["V"] + rng.choice((0, 2))
    begin = rng.randrange(step) if step > 0 else 0
    at = f"(+ (* {step} j) {begin})" if step > 0 else "(- V j 1)"
    value = f"(aref X i {at})"
    if step > 1 and rng.random() < 0.5:
        value = f"({rng.choice(('+', 'max'))} {value} (aref X i (+ (* {step} j) {(begin + 1) % step})))"
    body = nested(("H", "V"), f"(setf (aref Y i j) {applied(rng, dtype, value)})")
    return Nest("steps", (Array("X", dtype, ("H", "W")),), Array("Y", dtype, ("H", "V")), body, sizes)


def conditions(rng: Random) -> Nest:
    dims, sizes = drawn_dims(rng)
    dtype, at = rng.choice(("float", "float", "double", "uint8", "int16")), "ijkl"[:len(dims)]
    place, x = f"(aref Y {' '.join(at)})", f"(aref X {' '.join(at)})"
    cond = rng.choice((f"(> {x} 2)", f"(= (mod {at[-1]} 3) 1)", f"(< {at[-1]} 5)", f"(and (> {x} 1) (< {x} 3))"))
    body = rng.choice((f"(setf {place} (if {cond} {x} (* 2 {x})))",
                       f"(setf {place} {x}) (if {cond} (incf {place} {x}))",
                       f"(if {cond} (setf {place} (+ {x} 1)) (setf {place} 0))"))
    return Nest("conditions", (Array("X", dtype, dims),), Array("Y", dtype, dims), nested(dims, body), sizes)


def triangles(rng: Random) -> Nest:
    dtype = rng.choice(("float", "float", "double", "int16"))
    sizes = {"N": rng.choice((5, 20, 50, 100, 300))}
    extent, j = rng.choice((("i", "j"), ("(+ i 1)", "j"), ("(- N i)", "(+ i j)")))
    x = f"(aref X i {j})"
    if rng.random() < 0.5:
        body = ("(dotimes (i N) (setf (aref Y i) 0) "
                f"(dotimes (j {extent}) (incf (aref Y i) (* {x} (aref B {j})))))")
        return Nest("triangles", (Array("X", dtype, ("N", "N")), Array("B", dtype, ("N",))), Array("Y", dtype, ("N",)),
                    body, sizes)
    body = ("(dotimes (i N) (dotimes (j N) (setf (aref Y i j) 0))) "
            f"(dotimes (i N) (dotimes (j {extent}) (setf (aref Y i {j}) {applied(rng, dtype, x)})))")
    return Nest("triangles", (Array("X", dtype, ("N", "N")),), Array("Y", dtype, ("N", "N")), body, sizes)


FAMILIES: tuple[Callable[[Random], Nest], ...] = (maps, repeated, row_sums, column_sums, softmax, windows, pixels,
                                                conversions, steps, conditions, triangles)


def drawn(seed: int, count: int) -> list[Nest]:
    """So many nests; the families take turns."""
    return [FAMILIES[n % len(FAMILIES)](Random(f"{seed} {n}")) for n in range(count)]


def measured(nest: Nest, runtime: str, options: argparse.Namespace) -> dict[str, float]:
    """Seconds of a call by level."""
    rng, calls = np.random.default_rng(0), {}
    inputs = [(rng.random(a.shape(nest.sizes)) * 4).astype(DTYPES[a.dtype]) for a in nest.inputs]
    out = np.zeros(nest.output.shape(nest.sizes), DTYPES[nest.output.dtype])
    for level in (0, 2):
        operator = caten.compile(nest.text(), runtime=runtime, opt=level, config={"MARCH": "native"})
        calls[str(level)] = operator.bind(*inputs, out=out)
    taken = timing.rounds(calls, options.rounds, sampling.plan(sampling.task(options)))
    return {level: min([s.seconds for s in samples]) for level, samples in taken.items()}


def is_slower(row: dict[str, Any]) -> bool:
    return bool(row["2"] > SLOWER * row["0"] and row["2"] > SHORTEST)


def markdown(rows: list[dict[str, Any]]) -> str:
    """What share is slower, by compiler and family, and the worst."""
    text = ["| compiler | family | nests | -O2 slower | worst |", "|---|---|--:|--:|--:|"]
    groups = Counter((row["runtime"], row["family"]) for row in rows)
    for (runtime, family), count in sorted(groups.items()):
        own = [row for row in rows if (row["runtime"], row["family"]) == (runtime, family)]
        text.append(f"| {runtime} | {family} | {count} | {sum(map(is_slower, own))} | "
                    f"{max(row['2'] / row['0'] for row in own):.2f} |")
    return "\n".join([*text, ""])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plain", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--count", type=int, default=70, metavar="N", help="nests drawn")
    parser.add_argument("--runtimes", default="clang,gcc", help="the C compilers")
    sampling.add_options(parser, 9, timing.BATCH / 8)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows: list[dict[str, Any]] = []
    for nest in drawn(options.seed, options.count):
        for runtime in options.runtimes.split(","):
            row = {"family": nest.family, "runtime": runtime, "sizes": nest.sizes, "spec": nest.text()}
            row |= measured(nest, runtime, options)
            rows.append(row)
            if is_slower(row):
                print(f"{runtime} {nest.family} {nest.sizes}: -O0 {row['0'] * 1e6:.1f} us, -O2 {row['2'] * 1e6:.1f} us",
                      file=sys.stderr, flush=True)
        sampling.save(options.json, {"kind": "plain", "seed": options.seed, "machine": machine.described(),
                                     "rows": rows})
    print(markdown(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
