"""Benchmark sizes: from the command line, else from [bench.sizes], else from the largest test case."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tomli

from ..compiler import Built
from ..core.program import Case, Scalar
from ..core.size_formula import evaluate
from ..core.small_sizes import small_sizes
from ..errors import CatenError
from ..frontend.composite import fold
from ..frontend.op import OpProgram
from ..frontend.spec_files import SpecText
from ..runtime import work_formulas
from ..runtime.manifest import operators
from ..testing.sizes_and_scalars import case_values, match_settings

Values = dict[str, int | float]


def presets(texts: Sequence[SpecText]) -> dict[str, list[tuple[tuple[str, int | float], ...]]]:
    """Folded operator name -> the settings in its [bench.sizes]. The specs are valid: they were parsed before."""
    found = {}
    for text in texts:
        document = tomli.loads(text.text) if text.lang == "toml" and not text.text.lstrip().startswith("(") else {}
        written = document.get("composite", [])
        for table in written if isinstance(written, list) else [document | written]:
            sizes: Mapping[str, Mapping[str, Any]] = table.get("bench", {}).get("sizes", {})
            found[fold(table["name"])] = [tuple(preset.items()) for preset in sizes.values()]
    return found


def chosen(op: OpProgram, built: Built, given: Sequence[Sequence[tuple[str, int | float]]],
           own: Mapping[str, Sequence[Any]]) -> list[Values]:
    """The sizes and scalars of each measurement of an operator. `given`: from the command line; names of other
    operators are ignored. `own`: the presets."""
    if given:
        known = {fold(name) for name in (*op.sizes, *[s.name for s in op.all(Scalar)])}
        return [match_settings([(n, v) for n, v in settings if fold(n) in known], [op], "--sizes")
                for settings in given]
    if own.get(fold(op.name)):
        return [match_settings(settings, [op], f"[bench.sizes] of {op.name}") for settings in own[fold(op.name)]]
    cases = [values for case in op.all(Case) if not case.expect.startswith('{"error"')
             and (values := _values(op, case)) is not None]
    if cases:
        return [max(cases, key=lambda values: _work(op, values))]
    return [match_settings(list(small_sizes(next(m for m in operators(built.manifest) if m["op"] == op.name)).items()),
                           [op], "--sizes")]


def _values(op: OpProgram, case: Case) -> Values | None:
    """The sizes and scalars of a test case; None if some are missing."""
    try:
        return case_values(op, case)
    except CatenError:
        return None


def _work(op: OpProgram, values: Values) -> int:
    return int(evaluate(work_formulas.bytes_moved(op), {n: int(values[n]) for n in op.sizes}))
