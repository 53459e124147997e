"""The table of workloads: a name, the spec that caten compiles, and the problem that every peer solves."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from . import problems, programs
from .problems import Problem

HERE = Path(__file__).resolve().parent
SPECS, SAMPLES = HERE / "specs", HERE.parent / "samples"


@dataclass(frozen=True)
class Workload:
    """`odd`: a size that is no power of two, or an edge; such workloads are not part of the geometric mean of the
    table."""

    name: str
    spec: Path
    make: Callable[[], Problem]
    odd: bool = False


def _matmul(M: int, N: int, K: int, name: str = "", odd: bool = False) -> Workload:
    return Workload(name or f"gemm {M}x{N}x{K}", SAMPLES / "gemm.toml", partial(problems.matmul, M, N, K), odd)


def _batched(B: int, M: int, N: int, K: int, odd: bool = False) -> Workload:
    return Workload(f"batched {B}x({M}x{K}x{N})", SAMPLES / "gemm_batched.toml", partial(problems.matmul, M, N, K, B),
                    odd)


def _rows(kind: str, M: int, N: int, odd: bool = False) -> Workload:
    make, spec = {"softmax": (problems.softmax, "softmax"), "layernorm": (problems.layernorm, "layernorm"),
                  "column sum": (problems.column_sum, "sum_columns"),
                  "transpose": (problems.transpose, "transpose")}[kind]
    return Workload(f"{kind} {M}x{N}", SAMPLES / f"{spec}.toml", partial(make, M, N), odd)


def _vector(kind: str, N: int, size: str = "", odd: bool = False) -> Workload:
    make, spec = {"gelu(x*a+b)": (problems.gelu, SPECS / "gelu_affine.toml"),
                  "sum": (problems.total, SPECS / "sum.toml"),
                  "sin": (problems.sine, SAMPLES / "sin.toml"),
                  "arange": (problems.arange, SAMPLES / "arange.toml")}[kind]
    return Workload(f"{kind} {size or N}", spec, partial(make, N), odd)


K, M = 1 << 10, 1 << 20
WORKLOADS: tuple[Workload, ...] = (
    *[_matmul(n, n, n, f"gemm {n}") for n in (64, 128, 256, 512, 1024, 2048)],
    _matmul(1, 3072, 768, "gemv 1x768x3072"),
    _matmul(128, 3072, 768, "gemm 128x768x3072"),
    _batched(12, 128, 128, 64),
    _vector("gelu(x*a+b)", 64 * K, "64K"),
    _vector("gelu(x*a+b)", 16 * M, "16M"),
    _rows("softmax", 1024, 1024),
    _rows("softmax", 8192, 4096),
    _rows("layernorm", 4096, 768),
    _vector("sum", 16 * M, "16M"),
    _rows("column sum", 4096, 4096),
    _rows("transpose", 4096, 4096),
    Workload("conv 64x56x56 k3 to 64", SPECS / "conv3x3.toml", partial(problems.conv, 64, 56, 3, 1, 1, 64)),
    Workload("conv 3x224x224 k7 s2 to 64", SPECS / "conv7x7s2.toml", partial(problems.conv, 3, 224, 7, 2, 3, 64)),
    _vector("sin", 16 * M, "16M"),
    _vector("arange", 16 * M, "16M"),
    Workload("im2col 64x56x56 k3", SPECS / "im2col3x3.toml", partial(problems.im2col, 64, 56)),
    *[_matmul(n, n, n, f"gemm {n}", odd=True) for n in (500, 997, 1000)],
    _matmul(1, 997, 997, odd=True),
    _matmul(997, 1, 997, odd=True),
    _matmul(997, 997, 1, odd=True),
    _batched(1, 500, 500, 500, odd=True),
    _batched(7, 33, 65, 31, odd=True),
    Workload("sin 1x16M", SAMPLES / "sin.toml", partial(problems.sine, 16 * M, 1), True),
    _vector("gelu(x*a+b)", 997, odd=True),
    _rows("softmax", 997, 1000, odd=True),
    _rows("softmax", 1, 1_000_003, odd=True),
    _rows("softmax", 100_003, 1, odd=True),
    _rows("layernorm", 997, 1000, odd=True),
    _vector("sum", 997, odd=True),
    _rows("column sum", 997, 1000, odd=True),
    _rows("column sum", 1_000_003, 1, odd=True),
    _rows("transpose", 997, 1000, odd=True),
    Workload("conv 3x57x57 k3 to 5", SPECS / "conv3x3.toml", partial(problems.conv, 3, 57, 3, 1, 1, 5), True),
    Workload("im2col 3x57x57 k3", SPECS / "im2col3x3.toml", partial(problems.im2col, 3, 57), True),
)


def array_programs(seed: int | None = None) -> tuple[Workload, ...]:
    """The programs of whole arrays; with a seed at sizes that nobody chose."""
    return tuple([Workload(name, programs.SPECS / f"{file}.toml", make, seed is not None)
                  for name, file, make in programs.table(seed)])


GREATEST = 2000                # of a drawn size
LONGEST = 1 << 22              # of a drawn vector


def sized(seed: int | None, count: int) -> tuple[Workload, ...]:
    """The workloads of the table; or with a seed sizes that nobody chose, log-uniform: `count` products, half as
    many 3 x 3 convolutions, a quarter as many of other families each."""
    if seed is None:
        return WORKLOADS + array_programs()
    rnd = Random(seed)

    def size(greatest: int = GREATEST) -> int:
        return max(1, round(greatest ** rnd.random()))
    made = [_matmul(size(), size(), size(), odd=True) for _ in range(count)]
    for _ in range(count // 2):
        channels, side, filters = size(128), rnd.randint(5, 80), size(128)
        name, make = f"conv {channels}x{side}x{side} k3 to {filters}", partial(problems.conv, channels, side, 3, 1, 1,
                                                                               filters)
        made.append(Workload(name, SPECS / "conv3x3.toml", make, True))
    for _ in range(count // 4):
        made += [_rows(kind, size(), size(), odd=True) for kind in ("softmax", "layernorm", "column sum", "transpose")]
        made += [_vector(kind, size(LONGEST), odd=True) for kind in ("sum", "gelu(x*a+b)")]
    return tuple({w.name: w for w in (*made, *array_programs(seed))}.values())
