"""Vector legalisation: split a vector function into two halves, for float32 in float64 and for vectors wider than a
register."""
from __future__ import annotations

from .helper_functions import Helpers


def halved(helpers: Helpers, inner: str, operands: list[str], of: str, through: str, lanes: int) -> str:
    """`inner`, a function on vectors of type `through` and half of the lanes, applied to both halves of vectors of type
    `of`."""
    low, high = [f"{inner}({', '.join([f'{part}({v})' for v in operands])})"
                 for part in _parts(helpers, of, through, lanes)]
    return f"{_joined(helpers, of, through, lanes)}({low}, {high})"


def converted(text: str, of: str, to: str, kind: str) -> str:
    """A vector as another type, C type `kind`."""
    return text if of == to else f"__builtin_convertvector({text}, {kind})"


def _parts(helpers: Helpers, of: str, to: str, lanes: int) -> list[str]:
    """The functions that give the lower and the upper half of the lanes."""
    half = lanes // 2

    def part(which: str, first: int) -> str:
        name = f"ct_{which}_{to}x{half}" + (f"_of_{of}" if of != to else "")
        picked = f"__builtin_shufflevector(v, v, {', '.join(map(str, range(first, first + half)))})"
        vector, kind = helpers.type(of, lanes), helpers.type(to, half)
        return helpers.define(name, lambda: helpers.function(name, kind, f"{vector} v",
                                                             f"return {converted(picked, of, to, kind)};"))
    return [part("low", 0), part("high", half)]


def _joined(helpers: Helpers, to: str, of: str, lanes: int) -> str:
    """The function that puts two halves together."""
    half, name = lanes // 2, f"ct_join_{to}x{lanes}" + (f"_of_{of}" if of != to else "")
    narrow, wide = helpers.type(to, half), helpers.type(of, half)
    both = ", ".join([converted(v, of, to, narrow) for v in ("low", "high")])
    body = f"return __builtin_shufflevector({both}, {', '.join(map(str, range(lanes)))});"
    return helpers.define(name, lambda: helpers.function(name, helpers.type(to, lanes), f"{wide} low, {wide} high",
                                                         body))
