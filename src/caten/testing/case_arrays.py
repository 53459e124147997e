"""Arrays that a test case brings along, its input and what it expects, checked against the signature. Files are not
trusted."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..core.dtypes import DTYPES
from ..core.numpy_types import as_stored, kind_of
from ..core.program import Buffer, Case, Scalar, Source
from ..core.size_formula import evaluate
from ..errors import CatenError, Place, did_you_mean, error
from ..frontend.op import OpProgram
from . import archives
from .outcomes import EMPTY

Arrays = dict[str, np.ndarray]


def arrays_of(op: OpProgram, case: Case | None, sizes: dict[str, int]) -> tuple[Arrays | None, Arrays | None]:
    """The input of a case and what it expects; None where these are drawn and computed. CatenError E836 where they
    do not fit the operator."""
    if case is None:
        return None, None
    source = op.first(Source)
    folder = Path(source.file).parent if source else Path()
    expected = None if case.expect.startswith('{"error"') else _read(op, case, "expect", folder, sizes)
    return _fitting(op, case, _read(op, case, "input", folder, sizes)), expected


def _read(op: OpProgram, case: Case, part: str, folder: Path, sizes: dict[str, int]) -> Arrays | None:
    """The arrays that the `input` or `expect` of a case writes out, or those of its file, which are unpacked only
    where they have the names and shapes of the operator's."""
    text: str = getattr(case, part)
    if text in ("random", "reference", EMPTY, ""):
        return None
    try:
        if text.startswith("{"):
            arrays = {k: _listed(v) for k, v in json.loads(text).items()}
            _check_shapes(op, case, part, {k: v.shape for k, v in arrays.items()}, sizes)
            return arrays
        path = folder / text
        if not archives.is_archive(path):
            raise ValueError("it is no .npz; numpy.savez makes one")
        declared = archives.entries(path)
        _check_shapes(op, case, part, {k: e.shape for k, e in declared.items()}, sizes)
        return {name: as_stored(archives.load(path, name), op.buffers[name].type) for name in declared}
    except archives.TORN as problem:
        where = f"its {part}" if text.startswith("{") else text
        reason = getattr(problem, "strerror", None) or problem
        raise error("E836", f"cannot read the arrays of case '{case.name}' from {where}: {reason}",
                    op.place_of(case.spot(part))) from None


def _listed(value: Any) -> np.ndarray:
    """A list, of lists perhaps, as an array. Integers beyond int64 stay integers: beside others numpy would make
    floats of them."""
    array = np.asarray(value)
    if array.dtype.kind == "f":
        whole = np.asarray(value, dtype=object)
        if all(isinstance(v, int) and 0 <= v < 1 << 64 for v in whole.ravel()):
            return whole.astype(np.uint64)
    return array


def _check_shapes(op: OpProgram, case: Case, part: str, shapes: dict[str, tuple[int, ...]],
                  sizes: dict[str, int]) -> None:
    what, place = f"the case '{case.name}' of {op.name}", op.place_of(case.spot(part))
    for name, shape in shapes.items():
        param = op.buffers.get(name)
        if param is None:
            raise _misfit(op, name, what, place)
        wanted = tuple([int(evaluate(e, sizes)) for e in param.shape])
        if shape != wanted:
            raise error("E836", f"{what} gives {name} the shape {shape}, but with its sizes it is {wanted}", place)


def _fitting(op: OpProgram, case: Case, given: Arrays | None) -> Arrays | None:
    """The given arrays, if their elements fit the types of the signature."""
    for name, array in (given or {}).items():
        param = op.buffers[name]
        if not _holds(param, array):
            raise error("E836",
                        f"the case '{case.name}' of {op.name} gives {name} elements that are not {param.type}: its "
                        f"array is {array.dtype}",
                        op.place_of(case.spot("input")),
                        hint="numbers must lie in the range of the declared type, whole ones for integers")
    return given


def _misfit(op: OpProgram, name: str, what: str, place: Place | None) -> CatenError:
    if name in [*op.sizes, *[s.name for s in op.all(Scalar)]]:
        return error("E836", f"{what} gives '{name}', a number, among its arrays", place,
                     hint=f"sizes = {{ {name} = … }} gives numbers")
    return error("E836", f"{what} gives '{name}', which is no tensor of {op.name}", place,
                 hint=did_you_mean(name, list(op.buffers)))


def _holds(param: Buffer, array: np.ndarray) -> bool:
    """Can the elements be converted to the declared type? Floats may round, or become infinite; integers keep their
    value."""
    dtype, kind = DTYPES[param.type], kind_of(array.dtype)
    if array.size == 0:
        return True
    match dtype.kind:
        case "float":
            return kind in "biuf"
        case "complex":
            return kind in "biufc"
        case "bool":
            return kind == "b" or (kind in "iu" and bool(((array == 0) | (array == 1)).all()))
    whole = kind in "biu" or (kind == "f" and bool((np.isfinite(array) & (np.floor(array) == array)).all()))
    return whole and dtype.least <= int(array.min()) and int(array.max()) <= dtype.greatest
