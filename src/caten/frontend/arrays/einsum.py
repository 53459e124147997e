"""`np.einsum`: the subscripts of a sum of products, `bij,bjk->bik`, with `...` for any number of axes."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from .array_products import Labels, contract
from .builder import Builder
from .handles import Array, spelled


def einsum(b: Builder, subscripts: str, operands: Sequence[Array]) -> Array:
    """The sum of products that the subscripts describe. E325 if they do not."""
    inputs, output = _split(b, subscripts.replace(" ", ""))
    if len(inputs) != len(operands):
        _refuse(b, f"'{subscripts}' has subscripts for {len(inputs)} arrays, but {len(operands)} are given")
    labels = [_labels(b, part, x) for part, x in zip(inputs, operands, strict=True)]
    spread = max([_dots(own) for own in labels], default=0)
    dots: Labels = tuple(range(-spread, 0))
    if output is None:
        kept: Labels = (*dots, *sorted([label for label in {each for own in labels for each in own if each not in dots}
                                        if sum([own.count(label) for own in labels]) == 1]))
    else:
        before, ellipsis, after = output.partition("...")
        if dots and not ellipsis:
            _refuse(b, f"the result '{output}' lacks the axes of '...'", f"write '...{output}'")
        kept = (*before, *(dots if ellipsis else ()), *after)
    known = {each for own in labels for each in own}
    for label in kept:
        if label not in known:
            _refuse(b, f"the result has '{label}', which no operand has")
        if kept.count(label) > 1:
            _refuse(b, f"the result has '{label}' twice")
    return contract(b, operands, labels, kept, "einsum")


def _split(b: Builder, text: str) -> tuple[list[str], str | None]:
    """The subscripts of the operands and of the result."""
    if not re.fullmatch(r"[A-Za-z.,]*(->[A-Za-z.]*)?", text):
        _refuse(b, f"'{text}' is not of the form 'ij,jk->ik'", "letters for axes, a comma between arrays")
    left, arrow, right = text.partition("->")
    parts = [*left.split(","), *([right] if arrow else [])]
    if any(part.count(".") not in (0, 3) or ("." in part and "..." not in part) for part in parts):
        _refuse(b, f"'{text}': an ellipsis has three dots, once for each array")
    return left.split(","), right if arrow else None


def _labels(b: Builder, part: str, x: Array) -> Labels:
    """A label for each axis: a letter, or a number below 0 for an axis of the ellipsis, counted from the last one."""
    before, ellipsis, after = part.partition("...")
    spread = x.rank - len(before) - len(after)
    if spread < 0 or (spread > 0 and not ellipsis):
        _refuse(b, f"'{part}' names {len(before) + len(after)} axes of an array with {x.rank}, {spelled(x.shape)}")
    return (*before, *range(-spread, 0), *after)


def _dots(labels: Labels) -> int:
    return len([label for label in labels if isinstance(label, int)])


def _refuse(b: Builder, message: str, hint: str | None = None) -> NoReturn:
    b.fail("E325", message, hint)
