"""The extension `fft` of the standard: discrete Fourier transforms of any length.

`norm`: "backward" divides the inverse transform by n, "forward" the transform, and "ortho" both by √n. ValueError for
another word."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..element_types import DType
from ..tensor import Tensor, one
from .data_types import complex64, complex128, float32, float64
from .elementwise import conj
from .manipulation import concat

BACKWARDS = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
Axes = Sequence[int] | None


def fft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The discrete Fourier transform along an axis. `n`: the length; x is truncated or padded with zeros to it."""
    return one("fft", _complex(_fitted(x, n, axis)), axis=axis, norm=_known(norm))


def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `fft`, with the same parameters."""
    return one("ifft", _complex(_fitted(x, n, axis)), axis=axis, norm=_known(norm))


def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The transform of real input along an axis: the first n // 2 + 1 elements of `fft`; the others are their
    conjugates."""
    return one("rfft", _fitted(x, n, axis), axis=axis, norm=_known(norm))


def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `rfft`: n real numbers. The default of n is the even number 2 · (extent of `axis` - 1)."""
    count = 2 * (x.shape[axis] - 1) if n is None else n
    return one("irfft", _fitted(_complex(x), count // 2 + 1, axis), n=count, axis=axis, norm=_known(norm))


def fftn(x: Tensor, /, *, s: Axes = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The transform along several axes, of the lengths `s`. The default is the last len(s) axes, or all axes without
    `s`."""
    for n, axis in _steps(x, s, axes):
        x = fft(x, n=n, axis=axis, norm=norm)
    return _complex(x)


def ifftn(x: Tensor, /, *, s: Axes = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The inverse of `fftn`, with the same parameters."""
    for n, axis in _steps(x, s, axes):
        x = ifft(x, n=n, axis=axis, norm=norm)
    return _complex(x)


def rfftn(x: Tensor, /, *, s: Axes = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The transform of real input along several axes: `rfft` along the last of `axes`, then `fft` along the others."""
    *others, last = _steps(x, s, axes)
    made = rfft(x, n=last[0], axis=last[1], norm=norm)
    for n, axis in others:
        made = fft(made, n=n, axis=axis, norm=norm)
    return made


def irfftn(x: Tensor, /, *, s: Axes = None, axes: Axes = None, norm: str = "backward") -> Tensor:
    """The inverse of `rfftn`, with real results. `s`: the lengths of the results."""
    *others, last = _steps(x, s, axes)
    made = _complex(x)
    for n, axis in others:
        made = ifft(made, n=n, axis=axis, norm=norm)
    return irfft(made, n=last[0] if s is not None else None, axis=last[1], norm=norm)


def hfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The transform of Hermitian input, of which x is the first n // 2 + 1 elements along an axis: n real numbers. The
    default of n is 2 · (extent of `axis` - 1)."""
    return irfft(conj(_complex(x)), n=n, axis=axis, norm=BACKWARDS[_known(norm)])


def ihfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `hfft`: n // 2 + 1 complex numbers from n real ones."""
    made: Tensor = conj(rfft(x, n=n, axis=axis, norm=BACKWARDS[_known(norm)]))
    return made


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The sample frequencies of an `fft` of length n, in cycles per unit of the sample spacing `d`: k / (n·d)."""
    return Tensor(np.fft.fftfreq(n, d), dtype or float32)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The sample frequencies of an `rfft` of length n, in cycles per unit of the sample spacing `d`: k / (n·d), k ≥
    0."""
    return Tensor(np.fft.rfftfreq(n, d), dtype or float32)


def fftshift(x: Tensor, /, *, axes: int | tuple[int, ...] | None = None) -> Tensor:
    """Move the element of frequency 0 to the middle of each of these axes; without `axes`, of all."""
    return one("fftshift", x, axes=(axes,) if isinstance(axes, int) else axes)


def ifftshift(x: Tensor, /, *, axes: int | tuple[int, ...] | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return one("ifftshift", x, axes=(axes,) if isinstance(axes, int) else axes)


def _steps(x: Tensor, s: Axes, axes: Axes) -> list[tuple[int | None, int]]:
    """The lengths (None: the extent) and axes of a transform along several axes."""
    order = list(axes) if axes is not None else list(range(-len(s), 0)) if s is not None else list(range(x.ndim))
    return list(zip(s if s is not None else [None] * len(order), order, strict=True))


def _fitted(x: Tensor, n: int | None, axis: int) -> Tensor:
    """The array truncated or padded with zeros to n elements along an axis."""
    at = axis % x.ndim
    have = x.shape[at]
    if n is None or n == have:
        return x
    if n < have:
        return x[(*[slice(None)] * at, slice(0, n))]
    zeros = np.zeros((*x.shape[:at], n - have, *x.shape[at + 1:]), x.dtype.numpy)
    return concat([x, Tensor(zeros)], axis=at)


def _complex(x: Tensor) -> Tensor:
    wide: dict[DType, DType] = {float32: complex64, float64: complex128}
    return x.astype(wide.get(x.dtype, x.dtype))


def _known(norm: str) -> str:
    if norm not in BACKWARDS:
        raise ValueError(f"norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    return norm


__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn",
           "rfft", "rfftfreq", "rfftn"]
