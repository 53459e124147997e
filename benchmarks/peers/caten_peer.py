"""caten: the workload's spec with default options, called as anybody calls it, with outputs that are allocated once."""
from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import caten

from ..problems import Problem
from . import Call

VERSION = caten.__version__
_config: dict[str, int] = {}


def prepare(threads: int) -> None:
    _config["OMP"] = int(threads > 1)


@cache
def operator(spec: Path) -> Any:
    """One library for all sizes."""
    return caten.compile(spec, config=_config)


def compiled_by(spec: Path) -> dict[str, Any]:
    """The C compiler and its flags."""
    manifest = operator(spec).manifest
    return {"compiler": manifest["compiler"], "flags": manifest["flags"]}


def called(spec: Path, p: Problem) -> Call:
    f, arguments, keywords = operator(spec), p.arguments, p.keywords
    if not keywords:
        return lambda: f(*arguments)
    return lambda: f(*arguments, **keywords)


def bound(spec: Path, p: Problem) -> Call:
    """Without what Python does for a call: the C function on arguments that were prepared once."""
    prepared: Call = operator(spec).bind(*p.arguments, **p.keywords)
    return prepared


CALLS: dict[str, Any] = {}             # the spec of the workload says which operator it is
