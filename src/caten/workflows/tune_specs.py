"""Search for faster schedules of the operators of specs, and record them."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..benchmarking import sizes
from ..driver import record_places
from ..errors import Diagnostic, UsageError
from ..runtime import tuning_records
from ..tuning import tuner
from ..tuning.tuner import TuneResult
from .bench_specs import Settings
from .spec_library import SpecLibrary

BUDGET = 60.0                          # seconds for one operator
Progress = Callable[[str, float, float, str], None]


def tuned(library: SpecLibrary, settings: Sequence[Settings], budget: float, beside: bool,
          progress: Progress = lambda name, spent, of, text: None) -> Iterator[TuneResult]:
    """Search for `budget` seconds for each operator, and record the faster schedules; ends after an interrupted one.

    `settings`: sizes and scalars; empty: those of [bench.sizes], or the largest test case. `beside`: put the records
    beside the specs instead of into the cache."""
    library.check_as_written("tune")
    built, presets, options = library.built("so"), sizes.presets(library.texts), library.options
    if not beside and not options.use_cache:
        raise UsageError(Diagnostic("E933", "--no-cache leaves no place for records",
                                    hint="put them beside the specs with --beside"))
    todo = [(op, sizes.chosen(op, built, settings, presets)) for op in built.ops]
    for op, values in todo:
        def said(spent: float, of: float, text: str, name: str = op.name) -> None:
            progress(name, spent, of, text)
        result = tuner.tuned(op, values, options, budget, said, library.warn)
        folder, collection = record_places(op, options)
        _store(result, collection if beside else None, folder)
        yield result
        if result.interrupted:
            return


def _store(result: TuneResult, collection: Path | None, folder: Path | None) -> None:
    """Keep a record in one place. If nothing is faster, remove an earlier one."""
    if result.record is not None and collection is not None:
        before = tuning_records.read(collection) if collection.is_file() else []
        tuning_records.write(collection, tuning_records.merged([*before, result.record]))
    elif result.record is not None and folder is not None:
        tuning_records.keep(result.record, folder)
    elif result.record is None and result.measured and not result.interrupted:
        tuning_records.forget(result.key, folder, collection)
