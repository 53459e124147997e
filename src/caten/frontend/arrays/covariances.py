"""`np.cov` and `np.corrcoef` with all arguments: of complex numbers, and with weights."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtypes import is_complex
from ..typing import WEAK_FLOAT, WEAK_INT, Literal
from .array_products import conjugated, matmul
from .array_reductions import reduced
from .builder import Builder
from .elementwise_functions import apply, choose, converted, floating
from .fourier import Numpy
from .handles import Array, Operand, shape_of, size_term, spelled
from .joining import concatenate
from .numpy_calls import in_rows
from .views import expand_dims, squeeze, transpose


def cov(numpy: Numpy, b: Builder, m: Array, y: Array | None, rowvar: Any, bias: Any, ddof: int | None,
        fweights: Array | None, aweights: Array | None, dtype: str | None) -> Operand:
    """The covariances of variables, in rows or columns. `fweights`: how often each observation was made, `aweights`:
    how much each counts."""
    arrays = [b.array(converted(b, dtype, floating(b, x))) if dtype else x for x in (m, y) if x is not None]
    if fweights is None and aweights is None and not any(is_complex(x.dtype) for x in arrays):
        found: Operand = numpy(b, "cov", *arrays, rowvar=rowvar, bias=bias, ddof=ddof)
        return found
    wide = dtype or ("c128" if any(is_complex(x.dtype) for x in arrays) else "f64")
    rows = [in_rows(b, b.array(converted(b, wide, x)), bool(rowvar)) for x in arrays]
    together = rows[0] if len(rows) == 1 else concatenate(b, rows, 0)
    made = _weighted(b, together, int(not bias) if ddof is None else ddof, fweights, aweights)
    return squeeze(b, made, (0, 1)) if len(arrays) == 1 and arrays[0].rank == 1 else made


def _weighted(b: Builder, x: Array, ddof: int, fweights: Array | None, aweights: Array | None) -> Array:
    """Σ w (x - mean) (x - mean)* over what remains of the sum of the weights."""
    for each in (fweights, aweights):
        if each is not None:
            if each.rank != 1:
                b.fail("E330", f"weights of observations have one axis, and not the shape {spelled(each.shape)}")
            b.same_shape(each.shape, x.shape[1:], f"a row of observations of {spelled(x.shape)}")
    given = [floating(b, each) for each in (fweights, aweights) if each is not None]
    whole: Operand = converted(b, "f64", size_term(x.shape[1], b.pos))
    means: Operand
    if not given:
        means = apply(b, "div", reduced(b, "add", x, 1, True), whole)
    else:
        w = given[0] if len(given) == 1 else b.array(apply(b, "mul", *given))
        whole = reduced(b, "add", w, None, False)
        means = apply(b, "div", reduced(b, "add", b.array(apply(b, "mul", x, w)), 1, True), whole)
    apart = b.array(apply(b, "sub", x, means))
    lost: Operand = Literal(WEAK_INT, b.pos, value=ddof)
    if aweights is not None:                                 # those of weights that are no counts
        part = reduced(b, "add", b.array(apply(b, "mul", w, floating(b, aweights))), None, False)
        lost = apply(b, "mul", lost, apply(b, "div", part, whole))
    rest = apply(b, "sub", whole, lost)
    zero = Literal(WEAK_FLOAT, b.pos, value=0.0)
    rest = choose(b, apply(b, "le", rest, zero), zero, rest)
    weighted = b.array(apply(b, "mul", apart, w)) if given else apart
    products = matmul(b, apart, transpose(b, conjugated(b, weighted)))
    return b.array(apply(b, "div", products, converted(b, products.dtype, rest)))


def corrcoef(numpy: Numpy, b: Builder, x: Array, y: Array | None, rowvar: Any, dtype: str | None) -> Operand:
    """The correlations of variables, in rows or columns."""
    arrays = [b.array(converted(b, dtype, floating(b, each))) if dtype else each for each in (x, y) if each is not None]
    if not any(is_complex(each.dtype) for each in arrays):
        found: Operand = numpy(b, "corrcoef", *arrays, rowvar=rowvar)
        return found
    c = b.array(cov(numpy, b, x, y, rowvar, False, None, None, None, dtype))
    if not c.rank:
        return apply(b, "div", c, c)
    spread = apply(b, "sqrt", apply(b, "real", b.view(c, shape_of(c)[:1], lambda i: (i[0], i[0]))))
    made = apply(b, "div", apply(b, "div", c, converted(b, c.dtype, expand_dims(b, b.array(spread), 1))),
                 converted(b, c.dtype, spread))
    one = Literal(WEAK_FLOAT, b.pos, value=1.0)              # rounding may make a part greater
    real, imaginary = [apply(b, "clip", apply(b, part, made), apply(b, "neg", one), one) for part in ("real", "imag")]
    return apply(b, "complex", real, imaginary)


# By their names: the signature, and what makes the result.
COVARIANCES: dict[str, tuple[str, Callable[..., Any]]] = {
    "cov": ("m:array y:array=None rowvar=True bias=False ddof:int=None fweights:array=None aweights:array=None * "
            "dtype:dtype=None", cov),
    "corrcoef": ("x:array y:array=None rowvar=True * dtype:dtype=None", corrcoef)}
