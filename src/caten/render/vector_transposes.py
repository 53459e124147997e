"""Transpose blocks of memory in vector registers.

A block is divided into tiles: the numbers of rows and columns are powers of two, and a row fills at most one cache
line. Let L elements fill 16 bytes. Vector k, for k = 0 … L - 1, loads L columns of the rows k, L + k, 2·L + k …, one
16-byte part per row. log2 L steps that interleave these L vectors within their 16-byte parts give the L columns.
x86 shuffles within 16 bytes are fast, and only the loads move data across them.
"""
from __future__ import annotations

from itertools import pairwise

from ..core.dtypes import DTYPES
from ..loop.statements import Transpose
from .c_expressions import Expressions
from .code import call
from .helper_functions import Helpers
from .linear_offsets import distance

LINE, PART = 64, 16          # bytes


def transposed(stmt: Transpose, expressions: Expressions) -> str:
    """The call of the helper that transposes a block."""
    arguments = []
    for place, axis in ((stmt.ref, stmt.axis), (stmt.value, stmt.value_axis)):
        view = expressions.views[place.buffer]
        step = distance(axis % len(place.index), view.shape, view.order, view.strides)
        arguments += [expressions.pointer(place), expressions.value(step)]
    helper = block(expressions.helpers, f"u{8 * DTYPES[stmt.ref.dtype].bytes}", stmt.ref.count, stmt.value.count)
    return call(helper, *arguments).text


def block(helpers: Helpers, dtype: str, rows: int, columns: int) -> str:
    """The name of the helper that transposes `rows` × `columns` elements. It takes the row strides `to_step` and
    `of_step`."""
    name = f"ct_transpose_{dtype}_{rows}x{columns}"
    most = LINE // DTYPES[dtype].bytes

    def make() -> str:
        down, across = powers(rows, most), powers(columns, most)
        if len(down) == len(across) == 1:
            return _function(helpers, name, _tile(helpers, dtype, rows, columns))
        kind = helpers.types[dtype]
        return _function(helpers, name, [
            f"{block(helpers, dtype, n, m)}({_at(f'({kind} *)to', k, 'to_step', r)}, to_step, "
            f"{_at(f'(const {kind} *)of', r, 'of_step', k)}, of_step);" for k, m in across for r, n in down])
    return helpers.define(name, make)


def powers(count: int, most: int) -> list[tuple[int, int]]:
    """An even number as a sum of powers of two from 2 to `most`, as (offset, power): 44 = 16 + 16 + 8 + 4."""
    parts, at = [], 0
    while at < count:
        size = min(most, 1 << ((count - at).bit_length() - 1))
        parts.append((at, size))
        at += size
    return parts


def _function(helpers: Helpers, name: str, lines: list[str]) -> str:
    return helpers.function(name, "void", "void *to, int64_t to_step, const void *of, int64_t of_step",
                            "\n".join(lines))


def _tile(helpers: Helpers, dtype: str, rows: int, columns: int) -> list[str]:
    """The body for one tile. It loads adjacent parts of the same rows together, so that each cache line is used at
    once."""
    kind, vector = helpers.types[dtype], helpers.type(dtype, rows)
    part = min(PART // DTYPES[dtype].bytes, rows, columns)
    load, zips = _load(helpers, dtype, rows, part), [_zip(helpers, dtype, rows, part, high) for high in (False, True)]
    starts = range(0, columns, part)

    def declared(values: dict[str, str]) -> str:
        return f"{vector} {', '.join([f'{name} = {value}' for name, value in values.items()])};"
    lines = [f"const {kind} *p = of;", f"{kind} *q = to;"]
    lines += [declared({f"a{c}_{k}": load.format(_at("p", k, "of_step", c)) for c in starts}) for k in range(part)]
    letters = "abcde"[:part.bit_length()]
    for c in starts:
        for old, new in pairwise(letters):
            pairs = [(f"{old}{c}_{k}, {old}{c}_{k + part // 2}", zips[high]) for k in range(part // 2)
                     for high in (0, 1)]
            lines.append(declared({f"{new}{c}_{k}": f"{fn}({pair})" for k, (pair, fn) in enumerate(pairs)}))
    store = helpers.memory("store", dtype, rows)
    return [*lines, *[f"{store}({_at('q', c + k, 'to_step', 0)}, {letters[-1]}{c}_{k});" for c in starts
                      for k in range(part)]]


def _load(helpers: Helpers, dtype: str, rows: int, part: int) -> str:
    """The call that loads `part` columns of every `part`-th row, from the address {}."""
    if rows == part:
        return f"{helpers.memory('load', dtype, part)}({{}})"
    name = f"ct_rows_{dtype}x{rows}_{part}"

    def make() -> str:
        load, parts = helpers.memory("load", dtype, part), rows // part
        lines = [f"{helpers.type(dtype, part)} v{part}_{m} = {load}({_at('p', m * part, 'step', 0)});"
                 for m in range(parts)]
        size = part
        while size < rows:
            numbers = ", ".join(map(str, range(2 * size)))
            lines += [f"{helpers.type(dtype, 2 * size)} v{2 * size}_{m} = __builtin_shufflevector(v{size}_{2 * m}, "
                      f"v{size}_{2 * m + 1}, {numbers});"
                      for m in range(rows // (2 * size))]
            size *= 2
        lines.append(f"return v{rows}_0;")
        return helpers.function(name, helpers.type(dtype, rows), f"const {helpers.types[dtype]} *p, int64_t step",
                                "\n".join(lines))
    return f"{helpers.define(name, make)}({{}}, of_step)"


def _zip(helpers: Helpers, dtype: str, lanes: int, part: int, high: bool) -> str:
    """The name of the helper that interleaves the lower (or higher) halves of all parts of two vectors."""
    name = f"ct_{'high' if high else 'low'}_{dtype}x{lanes}_{part}"
    half = part // 2
    picks = [x for p in range(0, lanes, part) for k in range(half)
             for x in (p + high * half + k, lanes + p + high * half + k)]

    def make() -> str:
        vector = helpers.type(dtype, lanes)
        return helpers.function(name, vector, f"{vector} x, {vector} y",
                                f"return __builtin_shufflevector(x, y, {', '.join(map(str, picks))});")
    return helpers.define(name, make)


def _at(pointer: str, rows: int, step: str, columns: int) -> str:
    """The C text of pointer + rows · step + columns."""
    moved = [f"{rows} * {step}" if rows > 1 else step] if rows else []
    return " + ".join([pointer, *moved, *([str(columns)] if columns else [])])
