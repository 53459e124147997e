"""The table of features: what each does, at which sizes, on which data."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from ..core.numpy_types import numpy_dtype
from ..frozen import frozen
from .verdicts import Exact, Fails, Judge, Oracle

Sizes = Mapping[str, int]
Arrays = dict[str, Any]
Draw = Callable[[str, Sizes, np.random.Generator], Arrays]
TAILS = (*range(34), 47, 63, 64, 65)                    # the rests of vectors of up to 32 elements, and around 64
FEW = (1, 2, 7, 16, 33)
MANY = 300_000                                          # elements for which it is worthwhile to wake other threads
THREADS = (("OMP", "1"),)
PAST_INT32 = (1 << 31) + 64


def nothing(dtype: str, sizes: Sizes, rng: np.random.Generator) -> Arrays:
    """Everything is drawn."""
    return {}


@frozen
class Feature:
    """One row. `T` in declarations and bodies stands for an element type of the `kinds` (a key of features.KINDS;
    `first`: one type of each kind).

    `inputs`, `outputs`: declarations by name, an empty one for an output that is an input. `at`: sizes and integer
    scalars, one case each. `given`: arrays that are not drawn. `before`: operators that the body calls. `strides`: in
    elements, of the arrays `strided`, from the shape and the bytes of an element. `shift`: by how many elements arrays
    lie beside an aligned address.
    """

    name: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    body: str
    at: tuple[Sizes, ...]
    kinds: str = "number"
    given: Draw = nothing
    judge: Judge = field(default_factory=Oracle)
    first: bool = False
    before: str = ""
    config: tuple[tuple[str, str], ...] = ()
    strided: tuple[str, ...] = ()
    strides: Callable[[tuple[int, ...], int], tuple[int, ...]] | None = None
    shift: int = 0


def n(*lengths: int) -> tuple[Sizes, ...]:
    return tuple([{"N": length} for length in lengths])


def mn(*pairs: tuple[int, int]) -> tuple[Sizes, ...]:
    return tuple([{"M": rows, "N": columns} for rows, columns in pairs])


def small(*names: str) -> Draw:
    """Small whole numbers, of which sums are exact in every order: X[M N], or a vector where there is no M."""
    def draw(dtype: str, sizes: Sizes, rng: np.random.Generator) -> Arrays:
        shape = tuple([sizes[s] for s in ("M", "N") if s in sizes])
        return {name: rng.integers(0, 3, shape).astype(numpy_dtype(dtype)) for name in names}
    return draw


def indices(*values: int) -> Draw:
    """These indices as k[M]."""
    return lambda dtype, sizes, rng: {"k": np.resize(np.array(values, np.int64), sizes["M"])}


def with_nan(dtype: str, sizes: Sizes, rng: np.random.Generator) -> Arrays:
    """Numbers with a NaN at element `at`."""
    values = rng.uniform(-1, 1, sizes["N"])
    values[sizes["at"]] = np.nan
    return {"X": values.astype(numpy_dtype(dtype))}


def bytes_for_true(dtype: str, sizes: Sizes, rng: np.random.Generator) -> Arrays:
    """Bools as other languages may store them: any byte but 0 is true."""
    return {"X": np.resize(np.array([0, 1, 2, 128, 255, 0, 0], np.uint8), sizes["N"]).view(bool)}


def is_true(arguments: Mapping[str, Any]) -> Any:
    return arguments["X"].view(np.uint8) != 0


def spread(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Rows so far apart that the offset of the second one does not fit 32 bits."""
    return PAST_INT32 // size + 64 if size > 1 else PAST_INT32, 1


def gaps(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Some elements between rows, and some rows between planes."""
    rows = shape[-1] + 3
    return ((shape[-2] + 2) * rows, rows, 1)[-len(shape):]


X, R, XY = {"X": "T[N]"}, {"R": "T[N]"}, {"X": "T[N]", "Y": "T[N]"}
MATRIX, SQUARE = {"X": "T[M N]"}, {"R": "T[M N]"}
PAIRS = mn((1, 1), (2, 3), (5, 17), (9, 33), (16, 16))
COPY = "(dotimes (i N) (setf (aref R i) (aref X i)))"
ADD = "(dotimes (i N) (setf (aref R i) (+ (aref X i) (aref Y i))))"
SUM = "(setf s 0) (dotimes (i N) (incf s (aref X i)))"
COPY2 = "(dotimes (i M) (dotimes (j N) (setf (aref R i j) (aref X i j))))"
GATHER = "(dotimes (i M) (setf (aref R i) (aref X (aref k i))))"
ROWS = "(dotimes (i M) (setf (aref R i) 0) (dotimes (j N) (incf (aref R i) (aref X i j))))"

FEATURES: tuple[Feature, ...] = (
    # rests of vectors
    Feature("tail-of-a-copy", X, R, COPY, n(*TAILS), "all"),
    Feature("tail-of-a-map", XY, R, ADD, n(*TAILS)),
    Feature("tail-of-a-sum", X, {"s": "T[]"}, SUM, n(*TAILS)),
    Feature("tail-of-a-maximum", {"X": "T[N](where N > 0)"}, {"s": "T[]"},
            "(setf s (aref X 0)) (dotimes (i N) (maxcf s (aref X i)))", n(*TAILS[1:]), "real"),
    # loops
    Feature("symbolic-bounds", X, R, "(dotimes (i N) (setf (aref R i) 0) (loop (j i N) (incf (aref R i) (aref X j))))",
            n(*FEW)),
    Feature("zero-trip", X | R, {"R": ""}, "(loop (i 5 N) (setf (aref R i) (aref X i)))", n(0, 1, 4, 5, 6), "all"),
    Feature("negative-step", X | R, {"R": ""}, "(loop (i (- N 1) -1 -2) (setf (aref R i) (aref X (- N 1 i))))",
            n(0, *FEW), "all"),
    Feature("symbolic-step", X | R | {"k": "i64[]"}, {"R": ""}, "(loop (i 0 N k) (setf (aref R i) (aref X i)))",
            tuple([{"N": 33, "k": k} for k in (0, 1, 2, 7, 50)]), "all"),
    Feature("nested-reductions", {"X": "T[M K]", "Y": "T[K N]"}, SQUARE,
            "(dotimes (i M) (dotimes (j N) (setf (aref R i j) 0) (dotimes (p K) (incf (aref R i j) (* (aref X i p) "
            "(aref Y p j))))))",
            tuple([{"M": m, "K": k, "N": c}
                   for m, k, c in ((1, 1, 1), (3, 4, 5), (17, 9, 33), (16, 16, 16), (7, 33, 1), (2, 0, 3))])),
    Feature("sum-of-maxima", {"X": "T[M N](where N > 0)"}, {"s": "T[]"},
            "(setf s 0) (dotimes (i M) (set m (aref X i 0)) (dotimes (j N) (maxcf m (aref X i j))) (incf s m))", PAIRS,
            "real"),
    Feature("product", X, {"s": "T[]"}, "(setf s 1) (dotimes (i N) (mulcf s (aref X i)))", n(0, *FEW)),
    Feature("sums-of-columns", MATRIX, {"R": "T[N]"},
            "(dotimes (j N) (setf (aref R j) 0)) (dotimes (i M) (dotimes (j N) (incf (aref R j) (aref X i j))))",
            PAIRS),
    Feature("prefix-sum", X | R, {"R": ""}, "(loop (i 1 N) (setf (aref R i) (+ (aref R (- i 1)) (aref X i))))",
            n(0, *FEW)),
    Feature("minimum-of-rows", {"X": "T[M N](where N > 0)"}, {"R": "T[M]"},
            "(dotimes (i M) (setf (aref R i) (aref X i 0)) (dotimes (j N) (mincf (aref R i) (aref X i j))))", PAIRS,
            "real"),
    Feature("nan-in-a-maximum", {"X": "T[N](where N > 0)", "at": "i64[]"}, {"s": "T[]", "t": "i64[]"},
            "(setf t at) (setf s (aref X 0)) (dotimes (i N) (maxcf s (aref X i)))",
            tuple([{"N": 37, "at": a} for a in (0, 1, 20, 36)]), "float", with_nan),
    # layouts
    Feature("permuted", {"X": "T[M N]<1 0>"}, SQUARE, COPY2, PAIRS, "all"),
    Feature("permuted-3d", {"X": "T[M N K]<2 0 1>"}, {"R": "T[K M N]<1 2 0>"},
            "(dotimes (i M) (dotimes (j N) (dotimes (p K) (setf (aref R p i j) (aref X i j p)))))",
            tuple([{"M": m, "N": c, "K": k} for m, c, k in ((1, 1, 1), (2, 3, 4), (5, 9, 17))]), "all"),
    Feature("strided", MATRIX, SQUARE, COPY2, PAIRS, "all", strided=("X", "R"), strides=gaps),
    Feature("strided-3d", {"X": "T[M N K]"}, {"R": "T[M N]"},
            "(dotimes (i M) (dotimes (j N) (setf (aref R i j) 0) (dotimes (p K) (incf (aref R i j) (aref X i j p)))))",
            tuple([{"M": m, "N": c, "K": k} for m, c, k in ((1, 1, 1), (2, 3, 5), (5, 9, 33))]), strided=("X", "R"),
            strides=gaps),
    Feature("transposed", MATRIX, {"R": "T[N M]"}, "(dotimes (i M) (dotimes (j N) (setf (aref R j i) (aref X i j))))",
            (*PAIRS, {"M": 33, "N": 34}), "all"),
    Feature("misaligned", XY, R, ADD, n(1, 7, 16, 65), shift=1),
    Feature("misaligned-copy", X, R, COPY, n(1, 7, 16, 65), "all", shift=3),
    Feature("empty", MATRIX, SQUARE, COPY2, mn((0, 0), (0, 5), (5, 0)), "all"),
    Feature("sum-of-nothing", MATRIX, {"R": "T[M]"}, ROWS, mn((0, 0), (0, 5), (5, 0))),
    Feature("rank-0", {"a": "T[]"}, {"s": "T[]"}, "(setf s a)", ({},), "all"),
    Feature("offsets-over-2^31", MATRIX, SQUARE, COPY2, mn((2, 37)), "all", strided=("X", "R"), strides=spread),
    # accesses
    Feature("gather", X | {"k": "i64[M]"}, {"R": "T[M]"}, GATHER, mn((1, 1), (7, 3), (33, 50)), "all"),
    Feature("gather-by-type", {"X": "f32[N]", "k": "T[M]"}, {"R": "f32[M]"}, GATHER, mn((1, 1), (33, 50)), "integer"),
    Feature("scatter", {"X": "T[M]", "k": "i64[M]", "R": "T[N]"}, {"R": ""},
            "(dotimes (i M) (setf (aref R (aref k i)) (aref X i)))",
            mn((1, 1), (7, 3), (33, 20)), "all"),
    Feature("scatter-of-sums", {"X": "T[M]", "k": "i64[M]", "R": "T[N]"}, {"R": ""},
            "(dotimes (i M) (incf (aref R (aref k i)) (aref X i)))",
            mn((1, 1), (33, 5))),
    Feature("in-place", R, {"R": ""}, "(dotimes (i N) (setf (aref R i) (+ (aref R i) (aref R i))))", n(0, *FEW)),
    Feature("in-place-shift", R, {"R": ""}, "(loop (i 1 N) (setf (aref R (- i 1)) (aref R i)))", n(0, *FEW), "all"),
    Feature("window", X | R, {"R": ""}, "(loop (i 1 (- N 1)) (setf (aref R i) (+ (aref X (- i 1)) (aref X (+ i 1)))))",
            n(0, *FEW)),
    Feature("broadcast", {"X": "T[M]", "Y": "T[N]"}, SQUARE,
            "(dotimes (i M) (dotimes (j N) (setf (aref R i j) (* (aref X i) (aref Y j)))))", PAIRS),
    Feature("local-array", X, R,
            "(array t T (N)) (dotimes (i N) (setf (aref t i) (aref X i))) (dotimes (i N) (setf (aref R i) (aref t (- N "
            "1 i))))",
            n(0, *FEW), "all"),
    Feature("guarded-access", X | {"k": "i64[M]"}, {"R": "T[M]"},
            "(dotimes (i M) (setf (aref R i) (if (and (<= 0 (aref k i)) (< (aref k i) N)) (aref X (aref k i)) 0)))",
            mn((33, 5)), "number",
            indices(0, -1, 4, 5, 1 << 40, -(1 << 62))),
    # choice
    Feature("branches", X, R,
            "(dotimes (i N) (if (< (aref X i) 1) (setf (aref R i) 1) (setf (aref R i) (aref X i))) (when (< i 3) (incf "
            "(aref R i))))",
            n(0, *FEW), "real"),
    Feature("wraps-before-compared", XY, {"R": "i32[N]"},
            "(dotimes (i N) (setf (aref R i) (if (< (+ (aref X i) (aref Y i)) (aref X i)) 1 0)))",
            n(65), "integer"),
    Feature("wraps-before-shifted", XY, R, "(dotimes (i N) (setf (aref R i) (shr (+ (aref X i) (aref Y i)) 1)))", n(65),
            "integer"),
    Feature("wraps-before-divided", XY, R, "(dotimes (i N) (setf (aref R i) (floordiv (* (aref X i) (aref Y i)) 3)))",
            n(65), "integer"),
    Feature("widening-sum", X, {"s": "i64[]"}, "(setf s 0) (dotimes (i N) (incf s (cast int64 (aref X i))))",
            n(0, 1, 33, 100), "integer"),
    Feature("constants", X, {"R": "T[N]",
                             "S": "T[N]"},
            "(dotimes (i N) (setf (aref R i) (if (< (aref X i) 0) nan inf) (aref S i) (- inf)))", n(33), "float"),
    # checks and conditions
    Feature("index-too-large", X | {"k": "i64[M]"}, {"R": "T[M]"}, GATHER, mn((1, 3), (33, 3)), "all",
            indices(0, 1, 2, 3), first=True),
    Feature("index-negative", X | {"k": "i64[M]"}, {"R": "T[M]"}, GATHER, mn((1, 3), (33, 3)), "all", indices(-1, 1, 2),
            first=True),
    Feature("index-of-a-store", {"X": "T[M]", "k": "i64[M]", "R": "T[N]"}, {"R": ""},
            "(dotimes (i M) (setf (aref R (aref k i)) (aref X i)))",
            mn((3, 3), (34, 3)), "all", indices(0, 1, 3), first=True),
    Feature("second-check-fails", X | {"k": "i64[M]", "l": "i64[M]"}, {"R": "T[M]", "S": "T[M]"},
            "(dotimes (i M) (setf (aref R i) (aref X (aref k i)))) (dotimes (i M) (setf (aref S i) (aref X (aref l "
            "i))))", mn((5, 3)), "all",
            lambda dtype, sizes, rng: {"k": np.zeros(5, np.int64), "l": np.array([0, 1, 2, 7, 0])}, first=True),
    Feature("bound-over-the-extent", X | {"k": "i64[]"}, R,
            "(dotimes (i N) (setf (aref R i) (aref X i))) (dotimes (i k) (setf (aref R i) (aref X i)))",
            tuple([{"N": 9, "k": k} for k in (-3, 0, 9, 10, 1 << 30)]), "all", first=True),
    Feature("condition-holds", {"X": "T[N](where N = 2 * M)"}, {"R": "T[M]"},
            "(dotimes (i M) (setf (aref R i) (aref X (* 2 i))))",
            tuple([{"N": 2 * m, "M": m} for m in (0, 1, 9)]), "all"),
    Feature("condition-fails", {"X": "T[N](where N = 2 * M)"}, {"R": "T[M]"},
            "(dotimes (i M) (setf (aref R i) (aref X (* 2 i))))",
            mn((4, 9), (4, 7), (1, 0)), "all", judge=Fails("does not hold"), first=True),
    # calls, arguments, results
    Feature("call-of-a-composite", XY, R,
            "(array t T (N)) (call INNER X t) (dotimes (i N) (setf (aref R i) (+ (aref t i) (aref Y i))))", n(0, *FEW),
            before="(composite INNER ((X{T}[N]) -> (Z{T}[N])) (dotimes (i N) (setf (aref Z i) (* (aref X i) (aref X "
                   "i)))))"),
    Feature("several-outputs", XY, {"R": "T[N]", "S": "T[N]", "total": "T[]"},
            "(setf total 0) (dotimes (i N) (setf (aref R i) (+ (aref X i) (aref Y i)) (aref S i) (- (aref X i) (aref Y "
            "i))) (incf total (aref X i)))", n(0, *FEW)),
    Feature("scalar-by-value", X | {"a": "T[]"}, R, "(dotimes (i N) (setf (aref R i) (+ (aref X i) a)))", n(*FEW)),
    Feature("integer-scalar-in-a-bound", X | R | {"k": "i64[]"}, {"R": ""},
            "(loop (i (max 0 k) N) (setf (aref R i) (aref X i)))",
            tuple([{"N": 17, "k": k} for k in (-5, 0, 3, 17, 40)]), "all"),
    Feature("bool-of-any-byte", X, {"R": "T[N]", "S": "i32[N]"},
            "(dotimes (i N) (setf (aref R i) (aref X i)) (setf (aref S i) (if (aref X i) 1 0)))",
            n(1, 7, 65), "bool", bytes_for_true, Exact(lambda a: {"R": is_true(a), "S": is_true(a).astype(np.int32)})),
    Feature("bool-logic-of-any-byte", X, {"R": "T[N]", "S": "T[N]"},
            "(dotimes (i N) (setf (aref R i) (not (aref X i))) (setf (aref S i) (xor (aref X i) (aref X (- N 1 i)))))",
            n(1, 7,
              65), "bool", bytes_for_true, Exact(lambda a: {"R": ~is_true(a), "S": is_true(a) ^ is_true(a)[::-1]})),
    # threads
    Feature("threads-map", X, R, "(dotimes (i N) (setf (aref R i) (+ (aref X i) (aref X i))))", n(MANY),
            given=small("X"), config=THREADS,
            judge=Exact(lambda a: {"R": a["X"] + a["X"]}), first=True),
    Feature("threads-rows", MATRIX, {"R": "T[M]"}, ROWS, mn((700, 401)), given=small("X"), config=THREADS,
            judge=Exact(lambda a: {"R": a["X"].sum(axis=1, dtype=a["X"].dtype)}), first=True),
    Feature("threads-sum", X, {"s": "T[]"}, SUM, n(MANY), given=small("X"), config=THREADS,
            judge=Exact(lambda a: {"s": a["X"].sum(dtype=a["X"].dtype)}), first=True),
    Feature("threads-check", X | {"k": "i64[M]"}, {"R": "T[M]"}, GATHER, mn((MANY, 50)), "all",
            lambda dtype, sizes, rng: {"k": np.where(np.arange(MANY) == MANY // 2, 50, np.arange(MANY) % 50)},
            Fails("is outside [0, N)"), True,
            config=THREADS),
)
