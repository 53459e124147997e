"""JSON from outside: what is refused and in which words, and every reader of it against mutated documents."""
from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from caten import documents, schemas
from caten.benchmarking import plot, regressions, results
from caten.conformance import markdown_report, record
from caten.conformance import record_comparison as reports
from caten.errors import CatenError
from caten.runtime import copied_calls, manifest, tuning_records
from caten.runtime.call import callables
from pace import slowness

ANY: dict[str, Any] = {}
DIGITS = "9" * 5000
REFUSED = {
    "nothing": (b"", "not JSON: Expecting value in line 1, column 1"),
    "words": (b'{"a": nul}', "not JSON: Expecting value in line 1, column 7"),
    "half a document": (b'{"a": [1, 2', "not JSON"),
    "more behind it": (b"{} {}", "not JSON: Extra data"),
    "not UTF-8": (b'{"a": "\xff"}', "not UTF-8"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "byte order mark"),
    "NUL": (b'{"a": 1}\0', "not JSON"),
    "a control character": (b'{"a": "\x1b"}', "not JSON: Invalid control character"),
    "NaN": (b'{"a": NaN}', "NaN is no number of JSON"),
    "infinity": (b'{"a": -Infinity}', "-Infinity is no number of JSON"),
    "a great float": (b'{"a": 1e400}', "the number 1e400 is too great"),
    "a great integer": (DIGITS.encode(), "a number of 5000 digits"),
    "a key twice": (b'{"a": 1, "a": 2}', "the key 'a' is there twice"),
    "a hostile key twice": (b'{"\\u001b[2J": 1, "\\u001b[2J": 2}', "the key '\\x1b[2J' is there twice"),
    "half a character": (b'{"a": ["\\ud800"]}', "half a character"),
    "half a character in a key": (b'{"\\ud800": 1}', "half a character"),
    "101 lists": (b"[" * 101 + b"]" * 101, "nested deeper than 100"),
    "1,000,000 lists": (b"[" * 1_000_000, "nested deeper than 100"),
    "100,000 objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested deeper than 100"),
    "17 MiB": (b" " * (17 << 20), "larger than 16 MiB"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_document_is_refused_in_time(what: str) -> None:
    data, said = REFUSED[what]
    start = time.process_time()
    with pytest.raises(documents.Malformed) as refused:
        documents.parse(data, ANY)
    assert said in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 120
    assert time.process_time() - start < 2 * slowness()


def test_a_document_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": [1, 2.5, "é", true, null, {"b": {}}]}', "utf-8")
    assert documents.read(tmp_path / "a.json", ANY) == {"a": [1, 2.5, "é", True, None, {"b": {}}]}
    assert documents.parse(b"[" * 99 + b"]" * 99, ANY) is not None
    with pytest.raises(OSError, match="NUL"):
        documents.read(Path("a\0b"), ANY)


def test_a_device_is_not_read_to_its_end() -> None:
    with pytest.raises(documents.Malformed, match="larger than 16 MiB"):
        documents.read(Path("/dev/zero"), ANY)


# -- schemas --------------------------------------------------------------------------------------------------------------------------------

SAID = [
    ({"type": "integer"}, 1.5, "it is 1.5, and must be an integer"),
    ({"type": "integer"}, True, "it is true or false, and must be an integer"),
    ({"type": ["string", "null"]}, [], "it is an array, and must be a text or null"),
    ({"const": 1}, 2, "it is 2, and must be 1"),
    ({"const": 1}, True, "it is true or false, and must be 1"),
    ({"enum": ["a", "b"]}, "c\x1b", "it is 'c\\x1b', and must be a or b"),
    ({"pattern": "^[0-9]$"}, "1\n", "it is '1\\x0a', which it cannot be"),
    ({"minLength": 1}, "", "it is '', which it cannot be"),
    ({"minimum": 0}, -1, "it is -1, and must be at least 0"),
    ({"maximum": 1e30}, 10**31, "it is 10000000000000000000000000000000, and must be at most 1e+30"),
    ({"minItems": 2}, [1], "it has 1 items, and must have 2"),
    ({"items": {"type": "object", "required": ["a"]}}, [{"a": 1}, {}], "[1] lacks 'a'"),
    ({"properties": {"a": {"items": {"type": "number"}}}}, {"a": [1, "x"]}, "a[1] is 'x', and must be a number"),
    ({"properties": {}, "additionalProperties": False}, {"a\x07": 1}, "nothing is called 'a\\x07'"),
    ({"additionalProperties": {"type": "string"}}, {"a": 1}, "a is 1, and must be a text"),
    ({"propertyNames": {"enum": ["a"]}}, {"b": 1}, "the key b is 'b', and must be a"),
    ({"minProperties": 1}, {}, "it is empty"),
    ({"oneOf": [{"type": "null"}, {"type": "object", "required": ["a"]}]}, {}, "it lacks 'a'"),
    ({"allOf": [{"type": "object"}, {"required": ["a"]}]}, {}, "it lacks 'a'"),
    ({"not": {"required": ["ops"]}}, {"ops": 1}, "it is what it must not be"),
    ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "number"}}}, "x", "it is 'x', and must be a number"),
]


@pytest.mark.parametrize(("schema", "value", "said"), SAID)
def test_the_first_fault_has_its_place(schema: dict[str, Any], value: Any, said: str) -> None:
    assert schemas.fault(value, schema) == said


# -- every reader ---------------------------------------------------------------------------------------------------------------------------

RECORDS = {"schema_version": 1, "records": [{
    "key": "a" * 64, "op": "Gemm", "runtime": "clang", "config": "OMP=1", "cpu": "c", "compiler": "clang", "choices": {"gemm.rows": 4},
    "schedule": "(schedule)", "sizes": [{"M": 3, "a": 0.5}], "before": [2.0], "after": [1.0], "gain": 2.0, "date": "2024-01-01T00:00:00+00:00"}]}
RESULTS = {"schema_version": 1, "machine": {"cpu": "c", "cpus": 2}, "limits": {"threads": 1, "flops": 1e9, "read": 1e9, "copy": 1e9, "triad": 1e9},
           "rows": [{"op": "Gemm", "runtime": "clang", "sizes": {"M": 3, "a": 0.5}, "seconds": {"value": 1.0, "low": 0.5, "high": 2.0}, "flops": 10,
                     "bytes": 20, "samples": [1.0, 2.0], "clean": 2, "taken": 2, "compiler": "gcc", "flags": ["-O3"]}]}
REPORT = {"schema_version": 1, "provenance": {"runtime": "clang", "caten": "0", "command": "c", "again": "a", "seed": 0}, "counts": {"PASS": 1},
          "cells": [{"kind": "operator", "row": "add", "column": "f32", "cases": {"a": "PASS", "b": {"status": "FAIL", "note": "n", "ulp": 1.5}}}]}
MANIFEST = {
    "schema_version": 1, "abi_version": 1, "op": "Scale", "symbol": "ct_scale", "symbols": {"call": "ct_scale", "workspace": "ct_scale_ws",
    "workspace_size": "ct_scale_ws_size", "check": "ct_scale_check"},
    "documentation": "", "signature": ["X{float}[N]"], "arguments": [
        {"name": "X", "kind": "tensor", "dtype": "f32", "shape": ["(* 2 N)", 4], "order": [0, 1], "strides": ["s", 1], "direction": "inout"},
        {"name": "a", "kind": "scalar", "dtype": "f64", "shape": [], "order": [], "strides": None, "direction": "in"},
        {"name": "N", "kind": "size", "dtype": "i64", "shape": [], "order": [], "strides": None, "direction": "in"},
        {"name": "s", "kind": "stride", "dtype": "i64", "shape": [], "order": [], "strides": None, "direction": "in"}],
    "outputs": ["X"], "binds": {"N": 4}, "conditions": ["(>= N 1)"], "checks": [{"row": 1, "text": "N"}], "scratch_bytes": "(* 4 N)", "flops": 1, "bytes": None,
    "kernels": [{"name": "ct_scale", "launch": ["N"]}], "schedule": "(schedule)", "libraries": [], "target": "", "compiler": "", "flags": [], "runtime": "gcc",
    "spec_sha256": "", "runtime_sha256": ""}


def read_records(path: Path) -> None:
    found = tuning_records.read(path)
    assert all(r.line().isprintable() for r in found)
    tuning_records.text(tuning_records.merged(found)).encode()


def read_results(path: Path) -> None:
    found = results.read(path)
    found.text().encode()
    for line in (*results.table(found), plot.drawn(found)):
        line.encode()
    if found.rows:
        assert all(line.isprintable() for line in regressions.report(found, found))


def read_report(path: Path) -> None:
    found = record.read(str(path))
    reports.merged([found, found]).encode()
    markdown_report.markdown(found).encode()
    reports.regressions(found, found)


def read_manifest(path: Path) -> None:
    found = documents.read(path, {"type": "object"})
    manifest.checked(found, path)
    operator: Any = callables(copied_calls.library(path, found, lambda number, op: lambda call: 0))
    for one in operator.values() if "ops" in found else [operator]:
        assert one.__doc__
        assert one.signature
        assert one.__signature__ is not None


READERS: dict[str, tuple[Any, Callable[[Path], None]]] = {
    "records": (RECORDS, read_records), "results": (RESULTS, read_results), "report": (REPORT, read_report), "manifest": (MANIFEST, read_manifest)}
VALUES: tuple[Any, ...] = (None, True, False, 0, -1, 1, 1.5, -0.0, 1e308, 5e-324, 10**299, -(1 << 63), "", "x", "\x1b[2J\u202e", "/", "..", "(", "(floordiv 1 0)",
                           "(* N", "9" * 400, [], [[]], {}, {"x": 1}, [0, 0], "a" * 64, "(" * 200 + ")" * 200, "tensor", "out", "bool")


def variants(value: Any) -> Iterator[Any]:
    """A document with one value replaced, removed, or there twice, at every position."""
    yield from VALUES
    if isinstance(value, dict):
        for key, inner in value.items():
            rest = {k: v for k, v in value.items() if k != key}
            yield rest
            yield {**rest, "\x1b]0;x\x07": inner}
            yield from ({**value, key: variant} for variant in variants(inner))
    if isinstance(value, list):
        for n, inner in enumerate(value):
            yield value[:n] + value[n + 1:]
            yield value[:n + 1] + value[n:]
            yield from ([*value[:n], variant, *value[n + 1:]] for variant in variants(inner))


def scrambled(rng: random.Random, text: str) -> bytes:
    """A text with some characters replaced by others, cut, or doubled."""
    for _ in range(rng.randint(1, 4)):
        a, b = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        put = rng.choice((*'{}[]",:\\0-1e.Nt', "NaN", "1e999", DIGITS, "\\ud800", "\x00", "\x1b", "null", "é", "[" * 300, text[a:b][:60]))
        text = text[:a] + put + text[rng.choice((a, a + 1, min(b, a + 8))):]
    return text.encode() if rng.random() < 0.9 else text.encode("utf-16")


def outcome(path: Path, use: Callable[[Path], None]) -> str:
    """`ok`, a diagnostic's code, or what else happened."""
    start = time.process_time()
    try:
        use(path)
        result = "ok"
    except CatenError as refused:
        said = refused.diagnostics[0]
        result = said.code if len(said.message) < 400 else f"a message of {len(said.message)} characters"
    except documents.Malformed:
        result = "malformed"
    except Exception as fault:
        return f"{type(fault).__name__}: {fault}"
    took = time.process_time() - start
    return result if took < 2 or took < 2 * slowness() else f"{took:.1f} s"


OK = {"ok", "malformed", "E932", "E931", "E850", "E663", "E665"}


@pytest.mark.slice(2)
@pytest.mark.parametrize("kind", READERS)
def test_each_reader_takes_its_own_document_and_no_wrong_one_hurts_it(kind: str, tmp_path: Path) -> None:
    good, use = READERS[kind]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(good))
    assert outcome(path, use) == "ok"
    seen = set()
    for variant in variants(good):
        path.write_text(json.dumps(variant))
        seen.add(outcome(path, use))
        assert seen <= OK, f"{seen - OK}: {json.dumps(variant)[:2000]}"
    assert len(seen) >= 2


@pytest.mark.parametrize("kind", READERS)
def test_scrambled_texts_hurt_no_reader(kind: str, tmp_path: Path, nightly: bool) -> None:
    good, use = READERS[kind]
    rng, path = random.Random(7), tmp_path / "a.json"
    for _ in range(20_000 if nightly else 400):
        path.write_bytes(scrambled(rng, json.dumps(good)))
        assert (found := outcome(path, use)) in OK, f"{found}: {path.read_bytes()[:2000]!r}"


@pytest.mark.parametrize(("published", "good"), [(manifest.schema(), MANIFEST), (record.schema(), REPORT)], ids=["manifest", "report"])
def test_our_checker_agrees_with_another_one(published: dict[str, Any], good: Any, nightly: bool) -> None:
    judge = jsonschema.Draft202012Validator(published)
    for variant in (good, *list(variants(good))[::1 if nightly else 4]):
        if not any(isinstance(v, float) and v.is_integer() for v in _leaves(variant)):             # 1.0 is an integer to JSON Schema, and none to us
            assert (schemas.fault(variant, published) is None) == judge.is_valid(variant), (schemas.fault(variant, published), variant)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)
    else:
        yield value


def test_the_net_catches_a_reader_that_takes_things_for_granted(tmp_path: Path) -> None:
    def careless(path: Path) -> None:
        sum(r["gain"] for r in json.loads(path.read_text())["records"])
    path, found = tmp_path / "a.json", set()
    for variant in variants(RECORDS):
        path.write_text(json.dumps(variant))
        found.add(outcome(path, careless).split(":")[0])
    assert {"KeyError", "TypeError"} <= found
