"""Tune one operator: run the search and record its result."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from ..attach import runtime_for
from ..benchmarking import measure
from ..benchmarking.sizes import Values
from ..core.program import Schedule
from ..driver import record_places
from ..errors import Diagnostic
from ..frontend.op import OpProgram
from ..frozen import frozen
from ..options import Options
from ..runtime import cpu, tuning_records
from ..runtime.tuning_records import Record
from ..schedule.plans.parameters import Choices
from .candidates import Shop
from .search import Scored, Search

Progress = Callable[[float, float, str], None]


@frozen
class TuneResult:
    """The result of tuning an operator. `record`: the fastest schedule, or None if none was faster than that of -O2;
    `measured`: the number of schedules that were measured; `interrupted`: True if Ctrl-C ended the search; `note`: the
    reason why there was no search, if there was none."""

    op: str
    key: str
    record: Record | None
    measured: int
    interrupted: bool = False
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """The result as `caten tune --json` writes it."""
        return asdict(self)

    def line(self) -> str:
        """One line of text."""
        if self.note:
            return f"{self.op}  {self.note}"
        text = f"x{self.record.gain:.2f}  {self.record.said}" if self.record else "nothing faster than -O2"
        return f"{self.op}  {text}  ({self.measured} schedules measured{', interrupted' if self.interrupted else ''})"


def tuned(op: OpProgram, sizes: Sequence[Values], options: Options, budget: float, progress: Progress,
          warn: Callable[[Diagnostic], None]) -> TuneResult:
    """Search for `budget` seconds, starting from an earlier record. Raises CatenError E842 if the -O2 kernel cannot be
    measured. Ctrl-C ends the search and keeps its best result."""
    if op.first(Schedule) is not None:
        return TuneResult(op.name, "", None, 0, note="has its own schedule; -O3 uses it too")
    shop = Shop(op, sizes, options, measure.threads(options))
    key = tuning_records.key(shop.before, runtime_for([op], options))
    search = Search(shop, budget, progress=progress)
    interrupted = False
    try:
        shop.check()
        earlier = tuning_records.find(key, *record_places(op, options), warn)
        again = shop.replayed(earlier.schedule,
                              Choices(tuple(sorted(earlier.choices.items())))) if earlier is not None else None
        search.run(shop.present, [again] if again is not None else [])
    except KeyboardInterrupt:
        interrupted = True
    best = search.winner or (search.found[0] if interrupted and search.found else None)
    return TuneResult(op.name, key, None if best is None else _record(shop, key, best), search.measured, interrupted)


def _record(shop: Shop, key: str, best: Scored) -> Record:
    options, runtime = shop.options, runtime_for([shop.op], shop.options)
    numbers = range(len(shop.sizes))
    schedule = best.candidate.schedule
    after = tuple([shop.seconds[schedule, n] for n in numbers])
    return Record(
        key=key, op=shop.op.name, runtime=options.runtime, config=",".join([f"{k}={v}" for k, v in options.config]),
        cpu=cpu.model(),
        compiler=tuning_records.compiler(runtime), choices=dict(best.candidate.choices.values), schedule=schedule,
        sizes=tuple([dict(v) for v in shop.sizes]),
        before=tuple([t * r.value for t, r in zip(after, best.ratios, strict=True)]), after=after, gain=best.gain.value,
        date=datetime.now(UTC).isoformat(timespec="seconds"))
