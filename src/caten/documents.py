"""JSON that others wrote: read within limits, and refused with a reason where it is not what JSON should be.

Python's own reader takes what no other reads the same way (NaN, a key that is there twice, half a character) and fails
in its own words where a text is nested too deeply or a number has too many digits."""
from __future__ import annotations

import errno
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .echo import escape
from .schemas import fault

MAX_BYTES = 16 << 20
MAX_DIGITS = 300                          # of an integer: a float can still be made of it
MAX_DEPTH = 100
_HALF = re.compile(r"[\ud800-\udfff]")


class Malformed(ValueError):
    """What is wrong with a document, in words that complete `it is of no use: …`."""


def read(path: Path, schema: Mapping[str, Any]) -> Any:
    """The document in a file, checked against a schema. OSError if unreadable, Malformed if it does not conform."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except ValueError:
        raise OSError(errno.EINVAL, "a name of a file cannot hold NUL") from None
    return parse(data, schema)


def parse(data: bytes, schema: Mapping[str, Any]) -> Any:
    """The document that a text spells, which conforms to a schema. Raises Malformed."""
    if len(data) > MAX_BYTES:
        raise Malformed(f"it is larger than {MAX_BYTES >> 20} MiB")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("it is not UTF-8 text") from None
    if text.startswith("\ufeff"):
        raise Malformed("it begins with a byte order mark")
    try:
        value = json.loads(text, object_pairs_hook=_table, parse_int=_integer, parse_float=_number,
                           parse_constant=_constant)
        _check_texts(value)
    except json.JSONDecodeError as problem:
        raise Malformed(f"it is not JSON: {problem.msg} in line {problem.lineno}, column {problem.colno}") from None
    except RecursionError:
        raise Malformed(f"it is nested deeper than {MAX_DEPTH}") from None
    if (wrong := fault(value, schema)) is not None:
        raise Malformed(wrong)
    return value


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise Malformed(f"the key '{escape(twice[:40])}' is there twice")
    return found


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise Malformed(f"a number of {len(text)} digits")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if abs(value) == float("inf"):
        raise Malformed(f"the number {text[:40]} is too great")
    return value


def _constant(text: str) -> float:
    raise Malformed(f"{text} is no number of JSON")


def _check_texts(value: Any) -> None:
    """Half characters cannot be written again, and what is nested too deeply cannot be walked by those who get it."""
    level = [value]
    for _ in range(MAX_DEPTH):
        texts = [v for v in level if isinstance(v, str)]
        texts += [key for v in level if isinstance(v, dict) for key in v]
        if any(_HALF.search(t) for t in texts if not t.isascii()):
            raise Malformed("a text holds half a character (a lone surrogate)")
        level = [part for v in level if isinstance(v, dict | list)
                 for part in (v.values() if isinstance(v, dict) else v)]
        if not level:
            return
    raise Malformed(f"it is nested deeper than {MAX_DEPTH}")
