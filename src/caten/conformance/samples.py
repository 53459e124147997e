"""The specs that come with caten, with their own tests, as cases."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from .. import loading
from ..core.program import Case as SpecCase
from ..frontend import operator_library
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
    for path in sorted(operator_library.FOLDER.glob("*.toml")):
        if families and path.stem not in families:
            continue
        for op in loading.load_programs(read_file(str(path)), Options(case_instances=True)):
            for case in op.all(SpecCase):
                yield Case("library", op.name, path.stem, case.name, sample=path)
