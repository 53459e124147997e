"""Sizes and scalars given as text, `M=100, a=2.0`: read, and matched with what a program declares."""
from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from ..core.dtypes import is_integer
from ..core.expr import Expr, Var
from ..core.program import Bind, Case, Program, Require, Scalar
from ..core.size_inference import determined, equations_in, from_equations
from ..errors import CatenError, Diagnostic, UsageError, did_you_mean
from ..frontend.composite import named

GREATEST_SIZE = 1 << 40

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


def read_settings(text: str, option: str) -> tuple[tuple[str, int | float], ...]:
    """`M = 100, a=2.0` -> pairs as written. Blank items are ignored, so an empty text is no settings."""
    return tuple([read_setting(item, option) for item in text.split(",") if item.strip()])


def read_setting(item: str, option: str) -> tuple[str, int | float]:
    """`M = 100` -> the name and the number. `option` names the place in a message."""
    name, equals, value = (part.strip() for part in item.partition("="))
    if not equals or not _NAME.match(name):
        raise UsageError(Diagnostic("E904", f"{option}: '{item.strip()}' is not NAME=NUMBER",
                                    hint=f'write {option} "M=100,N=100"'))
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    raise UsageError(Diagnostic("E904", f"{option}: '{value}', the value of {name}, is not a number"))


def bad_size(option: str, name: str, value: object) -> CatenError:
    """The error for a value that no size can have."""
    return UsageError(Diagnostic("E905", f"{option}: the size {name} cannot be {value}",
                                 hint="sizes are integers from 0 to 2^40"))


def checked_size(option: str, name: str, value: int) -> int:
    """The value of a size, from 0 to 2^40."""
    if not 0 <= value <= GREATEST_SIZE:
        raise bad_size(option, name, value)
    return value


def match_settings(given: Sequence[tuple[str, int | float]], programs: Sequence[Program], option: str = "--test",
                   checked: bool = True) -> dict[str, int | float]:
    """The settings under the names that the programs declare, with the sizes that -D fixes and those that the programs'
    equations determine.

    UsageError where a size has no value, or (unless `checked` is false) where the values contradict an equation.
    Scalars without a value are drawn."""
    sizes = dict.fromkeys([name for p in programs for name in p.sizes])
    scalars = {s.name: s.type for p in programs for s in p.all(Scalar)}
    known = (*sizes, *scalars)
    values: dict[str, int | float] = {}
    problems: list[Diagnostic] = []
    for name, value in given:
        target = named(name, known)
        if target is None:
            listing = "it has " + (", ".join(known) or "no sizes and no scalars")
            problems.append(Diagnostic("E904", f"{option}: there is no size or scalar '{name}'",
                                       hint=did_you_mean(name, known),
                                       notes=((listing, None),)))
        elif target in sizes and not (isinstance(value, int) and 0 <= value <= GREATEST_SIZE):
            problems += bad_size(option, target, value).diagnostics
        elif target in scalars and isinstance(value, float) and not scalars[target].startswith(("f", "c", "bf")):
            problems.append(Diagnostic("E904", f"{option}: {target} is {scalars[target]}, not {value}"))
        else:
            values[target] = value
    for bind in [b for p in programs for b in p.all(Bind)]:
        if values.setdefault(bind.name, bind.value) != bind.value:
            problems.append(Diagnostic("E905",
                                       f"{option}: {bind.name} is {values[bind.name]}, but -D{bind.name}={bind.value} "
                                       "fixed it"))
    if not problems:
        problems += _completed(values, sizes, scalars, programs, option, checked)
    if problems:
        raise UsageError(*problems)
    return values


def _completed(values: dict[str, int | float], sizes: Iterable[str], scalars: Mapping[str, str],
               programs: Sequence[Program], option: str,
               checked: bool) -> list[Diagnostic]:
    """Add what the programs' equations determine to the values; what is wrong with the result."""
    equal = equations_in([r.cond for p in programs for r in p.all(Require)])
    try:
        found = from_equations(equal, {n: v for n, v in values.items() if isinstance(v, int)}, checked)
    except CatenError as problem:
        return [Diagnostic("E905", f"{option}: {d.message}",
                           hint="give other sizes, or leave out a size that the others determine")
                for d in problem.diagnostics]
    for name, value in found.items():
        if name in sizes and not 0 <= value <= GREATEST_SIZE:
            return list(bad_size(option, name, f"{value}, which a condition of the signature makes it").diagnostics)
        if name in sizes or is_integer(scalars[name]):
            values.setdefault(name, value)
    missing = _free([name for name in sizes if name not in values], equal, values)
    if not missing:
        return []
    shown = {name: values.get(name, 100) for name in sizes if name in values or name in missing}
    hint = f'{option} "{",".join([f"{n}={v}" for n, v in shown.items()])}"' if option.startswith("-") else \
           f"sizes = {{ {', '.join([f'{n} = {v}' for n, v in shown.items()])} }}"
    several = len(missing) > 1
    return [Diagnostic("E906",
                       f"{option}: the size{'s' if several else ''} {', '.join(missing)} {'are' if several else 'is'} "
                       "missing", hint=hint)]


def _free(missing: Sequence[str], equal: Sequence[tuple[Expr, Expr]], known: Iterable[str]) -> list[str]:
    """Those missing sizes that have to be given: the others follow from them."""
    computed = {side.name for pair in equal for side in pair if isinstance(side, Var)}
    free: list[str] = []
    for name in sorted(missing, key=lambda n: n in computed):                  # K of K = 2 M last
        if name not in determined((), equal, [*known, *free]):
            free.append(name)
    return sorted(free, key=list(missing).index)


def case_values(op: Program, case: Case) -> dict[str, int | float]:
    """The sizes and scalars of a test case, sizes also from the shapes of arrays that it writes out. CatenError where
    they do not fit the operator: it is the spec that is wrong."""
    where = f"the test case '{case.name}' of {op.name}"
    try:
        given = [read_setting(f"{s.name}={s.value}", where) for s in case.sizes]
        given += [(n, v) for n, v in _written_out(op, case).items() if n not in [s.name for s in case.sizes]]
        return match_settings(given, [op], where, checked=not case.expect.startswith('{"error"'))
    except UsageError as problem:
        raise CatenError(*[d.at(op.place_of(case.spot())) for d in problem.diagnostics]) from None


def _written_out(op: Program, case: Case) -> dict[str, int]:
    """The sizes that are an axis of an array among the inputs of a case."""
    found: dict[str, int] = {}
    for name, value in (json.loads(case.input) if case.input.startswith("{") else {}).items():
        for extent in op.buffers[name].shape if name in op.buffers else ():
            if not isinstance(value, list):
                break
            if isinstance(extent, Var):
                found.setdefault(extent.name, len(value))
            value = value[0] if value else None
    return found
