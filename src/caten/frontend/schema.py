"""Schema validation: a TOML spec against the published JSON Schema, spec.schema.json, with the position of every fault.

It knows the keywords that the file uses: `type properties additionalProperties required items minItems enum oneOf
anyOf $ref not`; the choices of `anyOf` are lists of required keys.
"""
from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from ..errors import Diagnostic, did_you_mean, in_file_order
from .spec_files import shown
from .toml_positions import Locations, Path

_SCHEMA = pathlib.Path(__file__).with_name("spec.schema.json")
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "number": (int, float),
    "integer": (int,),
}
_WORDS = {"object": "a table", "array": "an array", "string": "a string", "boolean": "a boolean", "number": "a number",
          "integer": "an integer"}


@cache
def schema() -> dict[str, Any]:
    """The published schema."""
    loaded: dict[str, Any] = json.loads(_SCHEMA.read_text("utf-8"))
    return loaded


INCOMPLETE = "(incomplete)"     # a key of a test case of which something was taken out; no spec has it
Violation = tuple[Diagnostic, Path, bool]      # with the path of the wrong value, and if a table is expected there


def problems(document: Any, places: Locations, kind: str = "spec") -> list[Diagnostic]:
    """All violations of the schema, in the order of the text. What violates it is taken out of `document`. `kind`:
    `spec`, or `rules` for a document of [[rewrite]] tables alone."""
    found = list(_check(document, schema() if kind == "spec" else {"$ref": f"#/$defs/{kind}"}, (), places))
    for _, path, table in found:
        _take_out(document, path, table)
        _mark_case(document, path)
    return in_file_order([d for d, _, _ in found])


def _take_out(document: Any, path: Path, table: bool) -> None:
    """Remove a value, or the array that it is an element of; an empty table stands in for a table."""
    while not table and path and isinstance(path[-1], int):
        path = path[:-1]
    if not path:
        return
    for part in path[:-1]:
        document = document.get(part, {}) if isinstance(document, dict) else document[part]
    if table:
        document[path[-1]] = {}
    else:
        document.pop(path[-1], None)


def _mark_case(document: Any, path: Path) -> None:
    """Mark the test case that a value was taken out of: it would seem to lack a size."""
    at = next((n for n, part in enumerate(path[:-1]) if part == "case" and isinstance(path[n + 1], int)), None)
    if at is None or path[at + 2:at + 3] not in ((), ("sizes",), ("input",)):
        return
    for part in path[:at + 2]:
        document = document[part]
    document[INCOMPLETE] = True


def _check(value: Any, rule: dict[str, Any], path: Path, places: Locations) -> Iterator[Violation]:
    while "$ref" in rule:
        rule = schema()["$defs"][rule["$ref"].rpartition("/")[2]]
    if "oneOf" in rule:
        options = [_resolved(r) for r in rule["oneOf"]]
        chosen = next((r for r in options if _has_type(value, r)), None)
        if chosen is None:
            yield _wrong_type(value, [t for r in options for t in _types(r)], path, places)
        else:
            yield from _check(value, chosen, path, places)
        return
    if not _has_type(value, rule):
        yield _wrong_type(value, _types(rule), path, places)
    elif isinstance(value, dict):
        yield from _check_table(value, rule, path, places)
    elif isinstance(value, list):
        if len(value) < rule.get("minItems", 0):
            yield Diagnostic("E013", f"'{_dotted(path)}' is empty", places.value(*path)), path, False
        for i, item in enumerate(value):
            yield from _check(item, rule["items"], (*path, i), places)
    elif "enum" in rule and value not in rule["enum"]:
        hint = did_you_mean(str(value), rule["enum"]) or f"use one of {', '.join(rule['enum'])}"
        message = f"'{_dotted(path)}' cannot be {shown(str(value))}"
        yield Diagnostic("E013", message, places.value(*path), hint), path, False


def _check_table(value: dict[str, Any], rule: dict[str, Any], path: Path, places: Locations) -> Iterator[Violation]:
    known, more = rule.get("properties", {}), rule.get("additionalProperties", True)
    for key, item in value.items():
        if key in known:
            yield from _check(item, known[key], (*path, key), places)
        elif isinstance(more, dict):
            yield from _check(item, more, (*path, key), places)
        else:
            where = f"in [{_dotted(path)}]" if path else "at the top level"
            hint = did_you_mean(key, list(known)) or f"the keys are {', '.join(known)}"
            unknown = Diagnostic("E010", f"unknown key {shown(key)} {where}", places.key(*path, key), hint)
            yield unknown, (*path, key), False
    choices = [choice["required"] for choice in rule.get("anyOf", [{"required": rule.get("required", ())}])]
    for key in () if any(set(keys) <= value.keys() for keys in choices) else choices[0]:
        if key not in value:
            where = f"[{_dotted(path)}] lacks" if path else "the spec lacks"
            form = f"[{key}]" if not path else f"'{key}'"
            hint = known[key].get("description") if path else "a spec starts with [composite]"
            yield Diagnostic("E011", f"{where} {form}", places.key(*path), hint), (), False


def _resolved(rule: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in rule:
        rule = schema()["$defs"][rule["$ref"].rpartition("/")[2]]
    return rule


def _types(rule: dict[str, Any]) -> list[str]:
    if "oneOf" in rule:
        return [t for r in rule["oneOf"] for t in _types(_resolved(r))]
    kinds = rule["type"]
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _has_type(value: Any, rule: dict[str, Any]) -> bool:
    kinds = _types(rule)
    return (isinstance(value, tuple(t for k in kinds for t in _TYPES[k]))
            and (not isinstance(value, bool) or "boolean" in kinds))


def _wrong_type(value: Any, kinds: list[str], path: Path, places: Locations) -> Violation:
    wanted = " or ".join(dict.fromkeys(_WORDS[k] for k in kinds))
    got = next((_WORDS[k] for k in ("boolean", "object", "array", "string", "number") if isinstance(value, _TYPES[k])),
               "a date or time")
    message = f"'{_dotted(path)}' must be {wanted}, not {got}"
    return Diagnostic("E012", message, places.value(*path)), path, "object" in kinds


def _dotted(path: Path) -> str:
    """A path as written: `composite.inputs[0]`."""
    return "".join([f"[{p}]" if isinstance(p, int) else f"{'.' if n else ''}{p if p.isprintable() else ascii(p)}"
                    for n, p in enumerate(path)])
