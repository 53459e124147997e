"""Records of `caten tune`: the schedule that was the fastest for one kernel on one machine, with the times that say so.

A record has a key: the hash of the kernel before it is scheduled, of the runtime with its options, the compiler's name
and the CPU. Records lie in the folder `records` of the cache, a file for each, and in collections: `gemm.tune.json`
beside `gemm.toml`, or what `--export` wrote. Files are replaced as a whole. Of two records with one key the later one
counts."""
from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..core.program import Ensure, Fact, Unchecked
from ..core.text import flat, form_of
from ..documents import Malformed
from ..documents import read as read_document
from ..echo import escape
from ..errors import CatenError, Diagnostic, ToolError, UsageError
from ..frozen import frozen
from ..loop.statements import LoopProgram
from . import cpu, library_cache
from .protocol import Runtime

WITHOUT_CHOICES = "moves without a plan"        # a schedule of the tuner's own, in words
SCHEMA_VERSION = 1
FOLDER = "records"                        # in the cache
SUFFIX = ".tune.json"                     # instead of the spec's

Warn = Callable[[Diagnostic], None]

_WORDS = ("op", "runtime", "config", "cpu", "compiler", "schedule", "date")
_POSITIVE: dict[str, Any] = {"type": "number", "minimum": 1e-30, "maximum": 1e30}
_SECONDS: dict[str, Any] = {"type": "array", "items": _POSITIVE}
SCHEMA: dict[str, Any] = {                # of a collection; a key names a file
    "type": "object", "required": ["schema_version", "records"],
    "properties": {"schema_version": {"const": SCHEMA_VERSION}, "records": {"type": "array", "items": {
        "type": "object", "required": ["key", *_WORDS, "choices", "sizes", "before", "after", "gain"],
        "properties": {"key": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                       **{word: {"type": "string"} for word in _WORDS},
                       "choices": {"type": "object", "additionalProperties": {"type": "integer"}},
                       "sizes": {"type": "array",
                                 "items": {"type": "object", "additionalProperties": {"type": "number"}}},
                       "before": _SECONDS, "after": _SECONDS, "gain": _POSITIVE}}}}}


@frozen
class Record:
    """A schedule, and what was measured. `choices`: the parameters that are not as at -O2; `sizes`: the sizes and
    scalars that were measured; `before` and `after`: seconds of a call at each of them, as -O2 schedules and with this
    schedule; `gain`: the geometric mean of their ratios, above 1 where the schedule is faster."""

    key: str
    op: str
    runtime: str
    config: str
    cpu: str
    compiler: str
    choices: Mapping[str, int]
    schedule: str
    sizes: tuple[Mapping[str, int | float], ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    gain: float
    date: str

    def line(self) -> str:
        """For a person."""
        measured = "; ".join([",".join([f"{n}={v}" for n, v in s.items()]) for s in self.sizes])
        target = f"{self.runtime} {self.config}".strip()
        return escape(f"{self.key[:12]}  {self.op}  {target}  x{self.gain:.2f}  ({measured})  {self.said}")

    @property
    def said(self) -> str:
        """The choices in words. A schedule of the tuner's own has none."""
        said = escape(", ".join([f"{name} = {value}" for name, value in self.choices.items()]))
        return said or WITHOUT_CHOICES


def key(program: LoopProgram, runtime: Runtime) -> str:
    """The key of a kernel before it is scheduled, on this machine."""
    kernel = [flat(form_of(c)) for c in program.clauses if not isinstance(c, Fact) or isinstance(c, Ensure | Unchecked)]
    settings = [f"{name}={value}" for name, value in sorted(runtime.settings.items())]
    machine = (flat(form_of(runtime.machine())), cpu.model())
    return library_cache.key("tuned", *kernel, runtime.name, *settings, *runtime.host.cflags, *machine,
                             compiler(runtime))


def compiler(runtime: Runtime) -> str:
    """The compiler's name, found without starting a process: the same on machines that have it in different places."""
    try:
        commands = runtime.commands(Path("source.c"), Path("library.so"), "so")
    except ToolError:
        return ""
    return Path(os.path.realpath(commands[-1][0])).name if commands else ""


def beside(spec: str) -> Path:
    """The collection beside a spec."""
    return Path(spec).with_suffix(SUFFIX)


def find(wanted: str, folder: Path | None, collection: Path | None, warn: Warn) -> Record | None:
    """The record of this key in the cache or in a collection. `warn` gets damaged files, which count as absent."""
    files = ([] if folder is None else [folder / FOLDER / f"{wanted}.json"]) + ([] if collection is None
                                                                                else [collection])
    found = [record for file in files for record in readable(file, warn)]
    return max([r for r in found if r.key == wanted], key=lambda r: r.date, default=None)


def stored(folder: Path, warn: Warn) -> list[Record]:
    """All records in the cache's folder, by name of operator."""
    found = [r for file in sorted((folder / FOLDER).glob("*.json")) for r in readable(file, warn)]
    return sorted(found, key=lambda r: (r.op, r.runtime, r.config, r.key))


def keep(record: Record, folder: Path) -> None:
    """Put a record into the cache's folder."""
    write(folder / FOLDER / f"{record.key}.json", [record])


def forget(wanted: str, folder: Path | None, collection: Path | None) -> None:
    """Remove a record from where it is."""
    if folder is not None:
        (folder / FOLDER / f"{wanted}.json").unlink(missing_ok=True)
    if collection is not None and collection.is_file():
        rest = [r for r in read(collection) if r.key != wanted]
        if rest:
            write(collection, rest)
        else:
            collection.unlink()


def merged(records: Iterable[Record]) -> list[Record]:
    """One record for each key, the latest."""
    latest: dict[str, Record] = {}
    for record in records:
        if record.key not in latest or latest[record.key].date <= record.date:
            latest[record.key] = record
    return sorted(latest.values(), key=lambda r: (r.op, r.runtime, r.config, r.key))


def text(records: Iterable[Record]) -> str:
    """A collection as it is written."""
    return json.dumps({"schema_version": SCHEMA_VERSION, "records": [asdict(r) for r in records]}, indent=2,
                      ensure_ascii=False) + "\n"


def write(path: Path, records: Iterable[Record]) -> None:
    """A collection, replaced as a whole. UsageError E903 where it cannot be written."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                out.write(text(records))
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as problem:
        raise UsageError(Diagnostic("E903", f"cannot write {path}: {problem.strerror}")) from None


def read(path: Path) -> list[Record]:
    """The records of a collection. UsageError E902 if the file is unreadable, E932 if it is malformed."""
    try:
        return [_record(entry) for entry in read_document(path, SCHEMA)["records"]]
    except OSError as problem:
        raise UsageError(Diagnostic("E902", f"cannot read {path}: {problem.strerror}")) from None
    except Malformed as problem:
        raise UsageError(Diagnostic("E932", f"{path} holds no records of caten tune: {problem}",
                                    hint="caten tune --export FILE writes them")) from None


def _record(entry: Mapping[str, Any]) -> Record:
    """A record from JSON that conforms to the schema."""
    words = {n: entry[n] for n in _WORDS}
    return Record(**words, key=entry["key"], choices=entry["choices"], sizes=tuple(entry["sizes"]),
                  before=tuple([float(t) for t in entry["before"]]),
                  after=tuple([float(t) for t in entry["after"]]), gain=float(entry["gain"]))


def readable(path: Path, warn: Warn) -> list[Record]:
    """The records of a collection; none where there is no such file, nor where it is damaged, which `warn` hears."""
    if not path.is_file():
        return []
    try:
        return read(path)
    except CatenError as problem:
        warn(Diagnostic("E652", f"the records in {path} are not used: {problem.diagnostics[0].message}",
                        severity="warning",
                        hint="remove the file, or tune again"))
        return []
