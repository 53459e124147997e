"""Instances of the library's operators for element types and ranks, as `caten ops build` makes them."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from ..core.dtypes import DTYPES, SPELLINGS
from ..errors import CatenError, Diagnostic, UsageError, did_you_mean
from ..options import Instance, Options
from .generic_signature import ANY_AXES, CLASSES, INFERRED, Tensor, read_instance, tensors, unused
from .operator_library import Entry
from .spec import load


def instances_of(entry: Entry, types: Sequence[str], ranks: Sequence[int]) -> list[Instance]:
    """One for each type and each rank: type variables are this type, where they may be, and `~` is so many axes. None
    where there is nothing to choose."""
    declared = tensors(entry.table["inputs"])
    if not any(t.is_generic for t in declared):
        return []
    return list(dict.fromkeys([_instance(entry.name, declared, dtype, rank) for dtype in types for rank in ranks]))


def that_exist(entry: Entry, instances: Sequence[Instance], options: Options) -> Iterator[Instance]:
    """Those with which the operator is right; if none is, that of its first test case."""
    case = entry.table["test"]["case"][0].get("instance")
    for choices in (instances, [replace(read_instance(case), of=entry.name)] if case else []):
        found = [i for i in choices if _is_right(entry, i, options)]
        yield from found
        if found:
            return


def known_type(written: str) -> str:
    """An element type by one of its names. UsageError E903 for another word."""
    if written.lower() not in SPELLINGS:
        raise UsageError(Diagnostic("E903", f"--type: '{written}' is no element type",
                                    hint=did_you_mean(written, list(SPELLINGS))))
    return SPELLINGS[written.lower()]


def _instance(name: str, declared: Sequence[Tensor], dtype: str, rank: int) -> Instance:
    arrays = list[tuple[str, str, tuple[int | str, ...]]]()
    for t in [t for t in declared if t.is_generic]:
        kinds, _, default = CLASSES.get((t.variable or "").lower(), CLASSES["dense"])
        own = dtype if DTYPES[dtype].kind in kinds else default
        block = [unused(f"{t.name if t.shape == (INFERRED,) else 'axis'}{n}", declared) for n in range(rank)]
        shape: list[str] = block if t.shape == (INFERRED,) else list(t.shape)
        if ANY_AXES in t.shape:
            at = t.shape.index(ANY_AXES)
            shape = [*t.shape[:at], *block, *t.shape[at + 1:]]
        if any(entry.startswith("(") for entry in shape):     # an extent that is arithmetic has a name of its own
            shape = [unused(f"{t.name}_{n}", declared) if e.startswith("(") else e for n, e in enumerate(shape)]
        arrays.append((t.name, own if t.variable else SPELLINGS[t.word.lower()], tuple(shape)))
    return Instance(tuple(arrays), (), name)


def _is_right(entry: Entry, instance: Instance, options: Options) -> bool:
    with suppress(CatenError):
        load(entry.spec, replace(options, instances=(instance,)))
        return True
    return False
