"""NumPy's Fourier transforms with all arguments: of a length that is given, the array is cut or filled with zeros."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.dtypes import DTYPES
from ...core.expr import Expr, Op, index
from ...loop.affine import canonical
from .argument_binding import as_extent
from .axis_arguments import axes_of, axis_of
from .builder import Builder
from .elementwise_functions import converted, number_as
from .handles import Array, Indices, Operand, constant_of
from .size_facts import floor_quotient

# Another function of NumPy with one result: of a builder, the path, and the arguments.
Numpy = Callable[..., Operand]
NORMS = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _one(name: str) -> Callable[..., Any]:
    def made(numpy: Numpy, b: Builder, x: Array, n: Expr | None, axis: Any, norm: str | None) -> Any:
        return _transform(numpy, b, name, x, n, axis, norm)
    return made


def _transform(numpy: Numpy, b: Builder, name: str, x: Array, n: Expr | None, axis: Any, norm: str | None) -> Array:
    """`fft` and its family along one axis; n: the length, None for that of x."""
    norm = norm or "backward"
    if DTYPES[x.dtype].kind in ("int", "uint", "bool"):
        x = b.array(converted(b, "f64", x))
    if norm not in NORMS:
        b.fail("E322", f"there is no norm '{norm}' of np.fft.{name}", f"there are {', '.join(NORMS)}")
    if n is not None:
        b.require(n > index(0), "E326", f"np.fft.{name} makes one element at least", "n=…")
    options: dict[str, Any] = {"axis": axis_of(b, axis, x.rank), "norm": norm}
    if name not in ("irfft", "hfft"):
        return b.array(numpy(b, f"fft.{name}", fitted(b, x, n, axis), **options))
    if n is not None:
        half = canonical(floor_quotient(n, index(2)) + 1)
        x, count = fitted(b, x, half, axis), constant_of(n)
        if count is None:
            b.fail("E327", f"the length of np.fft.{name} is a number", "leave it out: it is even then")
        if count % 2:
            options["n"] = count
    return b.array(numpy(b, f"fft.{name}", x, **options))


def fitted(b: Builder, x: Array, n: Expr | None, axis: Any) -> Array:
    """The array cut, or filled with zeros, to n elements along an axis."""
    place = axis_of(b, axis, x.rank)
    have = x.shape[place]
    if n is None or n is have:
        return x
    shape = [n if each == place else extent for each, extent in enumerate(x.shape)]
    if b.sizes.proves(Op("le", (n, have))):
        return b.view(x, shape, lambda i: i)
    zero = b.typing.default(number_as(b, x.dtype, 0))

    def element(i: Indices) -> Expr:
        return Op("where", (Op("lt", (i[place], have)), x.at(i), zero))
    return b.compute(shape, element)


def _several(name: str) -> Callable[..., Any]:
    def made(numpy: Numpy, b: Builder, x: Array, s: Any, axes: Any, norm: str | None) -> Any:
        lengths = None if s is None else _lengths(b, s)
        count = None if lengths is None else len(lengths)
        places = axes_of(b, axes if axes is not None or count is None else tuple(range(-count, 0)), x.rank)
        if lengths is not None and len(lengths) != len(places):
            b.fail("E321", f"np.fft.{name} has {len(places)} axes, and {len(lengths)} lengths")
        steps = list(zip(lengths or [None] * len(places), places, strict=True))
        if not steps:
            return numpy(b, f"fft.{name}", x, axes=())
        real = name.removesuffix("n").removesuffix("2")
        one = "ifft" if name.startswith("i") else "fft"
        *others, last = steps
        if real == "rfft":
            x = _transform(numpy, b, "rfft", x, *last, norm)
        for n, axis in (others[::-1] if "rfft" in real else steps[::-1]):
            x = _transform(numpy, b, one, x, n, axis, norm)
        return _transform(numpy, b, "irfft", x, *last, norm) if real == "irfft" else x
    return made


def _two(name: str) -> Callable[..., Any]:
    several = _several(f"{name}n")

    def made(numpy: Numpy, b: Builder, x: Array, s: Any, axes: Any, norm: str | None) -> Any:
        return several(numpy, b, x, s, (-2, -1) if axes is None else axes, norm)
    return made


def _lengths(b: Builder, s: Any) -> Sequence[Expr | None]:
    given = s if isinstance(s, tuple | list) else [s]
    found = [None if each == -1 else as_extent(b, each) for each in given]
    if any(n is None and each != -1 for n, each in zip(found, given, strict=True)):
        b.fail("E322", "the lengths of a transform are numbers and arithmetic over sizes")
    return found


# By their paths: the signature, and what makes the result.
FOURIER: dict[str, tuple[str, Callable[..., Any]]] = {
    **{f"fft.{name}": ("a:array n:extent=None axis=-1 norm:text=None", _one(name))
       for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"fft.{name}n": ("a:array s=None axes=None norm:text=None", _several(f"{name}n"))
       for name in ("fft", "ifft", "rfft", "irfft")},
    **{f"fft.{name}2": ("a:array s=None axes=None norm:text=None", _two(name))
       for name in ("fft", "ifft", "rfft", "irfft")}}
