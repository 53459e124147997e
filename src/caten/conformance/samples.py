"""The specs that come with caten, with their own tests, as cases."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from .. import loading
from ..core.program import Case as SpecCase
from ..frontend import instances, operator_library
from ..frontend.spec import read_file
from ..options import Options
from .cases import Case


def folder() -> Path:
    """Where they are: inside the installed package, or beside `src` in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "_samples"
    return inside if inside.is_dir() else package.parents[1] / "samples"


def sample_cases() -> Iterator[Case]:
    """Rows are operators; the names are those of the spec's own cases."""
    for path in sorted(folder().glob("*.toml")):
        for op in loading.load_programs(read_file(str(path)), Options()):
            for name in [c.name for c in op.all(SpecCase)] or ["default sizes"]:
                yield Case("sample", op.name, path.stem, name, sample=path)


def library_cases(families: Sequence[str] = ()) -> Iterator[Case]:
    """Rows are the instances of operators that their test cases name; columns are families: these, or all."""
    for entry in operator_library.entries():
        if not families or entry.family in families:
            for row, name in instances.cases_of(entry.table):
                yield Case("library", row, entry.family, name, sample=entry.path)
