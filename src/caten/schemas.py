"""Does a JSON document conform to a JSON Schema? The first fault, with its place in the document.

The part of JSON Schema (2020-12) that our schemas use: `type const enum pattern minLength minimum maximum items
minItems properties required additionalProperties propertyNames minProperties oneOf allOf not $ref`."""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .echo import escape

Rule = Mapping[str, Any]
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "number": (int, float),
                                       "integer": (int,), "null": (type(None),),
}
_WORDS = {"object": "an object", "array": "an array", "string": "a text", "boolean": "true or false",
          "number": "a number", "integer": "an integer",
          "null": "null"}


def fault(document: Any, schema: Rule) -> str | None:
    """`records[3].gain is a text, and must be a number`; None where nothing is wrong."""
    return next(_faults(document, schema, "", schema), None)


def _faults(value: Any, rule: Rule, at: str, schema: Rule) -> Iterator[str]:
    if "$ref" in rule:
        yield from _faults(value, schema["$defs"][rule["$ref"].rpartition("/")[2]], at, schema)
        return
    for part in rule.get("allOf", ()):
        yield from _faults(value, part, at, schema)
    if "oneOf" in rule:
        yield from _faults_of_all(value, rule["oneOf"], at, schema)
    if "not" in rule and next(_faults(value, rule["not"], at, schema), None) is None:
        yield f"{at or 'it'} is what it must not be"
    kinds = rule.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield f"{_shown(value, at)}, and must be {' or '.join([_WORDS[k] for k in kinds])}"
        return
    if ("const" in rule and not _same(value, rule["const"])) or ("enum" in rule and not any(_same(value, one)
                                                                                            for one in rule["enum"])):
        yield (f"{_shown(value, at)}, and must be "
               f"{' or '.join([str(one) for one in rule.get('enum', (rule.get('const'),))])}")
    elif isinstance(value, str):
        if len(value) < rule.get("minLength", 0) or ("pattern" in rule
                                                     and not re.search(rule["pattern"].replace("$", r"\Z"), value)):
            yield f"{_shown(value, at)}, which it cannot be"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if value < rule.get("minimum", value):
            yield f"{_shown(value, at)}, and must be at least {rule['minimum']}"
        if value > rule.get("maximum", value):
            yield f"{_shown(value, at)}, and must be at most {rule['maximum']}"
    elif isinstance(value, list):
        if len(value) < rule.get("minItems", 0):
            yield f"{at or 'it'} has {len(value)} items, and must have {rule['minItems']}"
        for n, item in enumerate(value if "items" in rule else ()):
            yield from _faults(item, rule["items"], f"{at}[{n}]", schema)
    elif isinstance(value, dict):
        yield from _faults_of_object(value, rule, at, schema)


def _faults_of_object(value: dict[str, Any], rule: Rule, at: str, schema: Rule) -> Iterator[str]:
    known, more = rule.get("properties", {}), rule.get("additionalProperties", True)
    if missing := [key for key in rule.get("required", ()) if key not in value]:
        yield f"{at or 'it'} lacks '{missing[0]}'"
    if len(value) < rule.get("minProperties", 0):
        yield f"{at or 'it'} is empty"
    for key, item in value.items():
        inside = f"{at}.{escape(key[:40])}" if at else escape(key[:40])
        if "propertyNames" in rule:
            yield from _faults(key, rule["propertyNames"], f"the key {inside}", schema)
        if key in known:
            yield from _faults(item, known[key], inside, schema)
        elif isinstance(more, Mapping):
            yield from _faults(item, more, inside, schema)
        elif not more:
            yield f"nothing is called '{inside}'"


def _faults_of_all(value: Any, rules: list[Rule], at: str, schema: Rule) -> Iterator[str]:
    """None if a value conforms to one of the rules, else the fault of the closest rule."""
    found = [next(_faults(value, rule, at, schema), None) for rule in rules]
    if None not in found:
        yield max([f for f in found if f is not None], key=lambda f: (", and must be" not in f, len(f)))


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _same(value: Any, one: Any) -> bool:
    return type(value) is type(one) and bool(value == one)


def _shown(value: Any, at: str) -> str:
    if isinstance(value, str):
        what = f"'{escape(value[:40])}'"
    elif _is(value, "number"):
        what = str(value)[:40]
    else:
        what = next(word for kind, word in _WORDS.items() if _is(value, kind))
    return f"{at or 'it'} is {what}"
