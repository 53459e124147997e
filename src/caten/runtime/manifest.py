"""The manifest: what a library says of itself, for bindings in any language.

A library of one operator has all keys at the top; one of several has the keys that its operators share at the top, and
the others in each entry of `ops`. `manifest.schema.json` is the published schema. Formulas are prefix arithmetic over
sizes (core.size_formula)."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..core.size_formula import evaluate, formula
from ..echo import escape
from ..errors import CatenError, error
from ..schemas import fault

SCHEMA_VERSION = 1
ABI_VERSION = 1
Manifest = dict[str, Any]
SHARED = ("schema_version", "abi_version", "libraries", "target", "compiler", "flags", "runtime", "spec_sha256",
          "runtime_sha256")


def known_version(manifest: Mapping[str, Any], origin: Path) -> None:
    """E665 where a manifest is of another version than this caten knows. `origin`: the file that holds it."""
    for key, what, known in (("abi_version", "the calling convention", ABI_VERSION),
                             ("schema_version", "a manifest of version", SCHEMA_VERSION)):
        if manifest.get(key) != known:
            raise error("E665", f"{origin} has {what} {escape(str(manifest.get(key))[:40])}; this caten knows {known}",
                        hint="compile it again")


def checked(manifest: Mapping[str, Any], origin: Path) -> None:
    """E665 for a manifest of another version, E663 for one that breaks the schema or contradicts itself."""
    known_version(manifest, origin)
    wrong = fault(manifest, schema()) or next((w for op in operators(manifest) for w in _contradictions(op)), None)
    if wrong is not None:
        raise error("E663", f"the manifest of {origin} is damaged: {wrong}", hint="compile the spec again")


def _contradictions(op: Mapping[str, Any]) -> Iterator[str]:
    """What the schema cannot say: names mean one argument, axes agree, formulas are formulas over sizes and scalars."""
    arguments = [a["name"] for a in op["arguments"]]
    numbers = [a["name"] for a in op["arguments"] if a["kind"] != "tensor"]
    written = [a["name"] for a in op["arguments"] if a["kind"] == "tensor" and a["direction"] != "in"]
    if twice := [name for name in arguments if arguments.count(name) > 1]:
        yield f"two arguments are called {twice[0]}"
    if sorted(op["outputs"]) != sorted(written):
        yield f"the outputs are {', '.join(op['outputs']) or 'none'}, and it writes {', '.join(written) or 'nothing'}"
    for a in op["arguments"]:
        if sorted(a["order"]) != list(range(len(a["shape"]))) or len(a["strides"] or a["shape"]) != len(a["shape"]):
            yield f"the axes of {a['name']} do not agree"
    texts = [e for a in op["arguments"] for e in (*a["shape"], *(a["strides"] or ()))]
    for text in (*texts, *op["conditions"], *[e["condition"] for e in op.get("ensures", ())], op["scratch_bytes"]):
        try:
            expr = formula(text)
            evaluate(expr, dict.fromkeys((*numbers, "ct_threads"), 1))
        except (CatenError, KeyError, TypeError, ArithmeticError, AttributeError):
            yield f"'{escape(str(text)[:60])}' is no formula over its sizes"


def operators(manifest: Mapping[str, Any]) -> list[Manifest]:
    """One complete manifest per operator of a library."""
    if "ops" not in manifest:
        return [dict(manifest)]
    shared = {k: v for k, v in manifest.items() if k != "ops"}
    return [shared | op for op in manifest["ops"]]


def to_json(manifest: Mapping[str, Any]) -> str:
    """The text of a manifest file: the same bytes for the same manifest."""
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def embedded_text(manifest: Mapping[str, Any]) -> str:
    """The text of a manifest as it is inside its library."""
    return json.dumps(manifest, ensure_ascii=True, separators=(",", ":"))


def manifest_c(manifest: Mapping[str, Any]) -> str:
    """C text that puts the manifest into the library: `ct_OP_manifest` points to it, and where it is the only library
    of a program, or a shared one, it is `ct_manifest`, too."""
    text = embedded_text(manifest)
    pieces = [text[i:i + 100] for i in range(0, len(text), 100)]
    lines = "\n".join(['  "' + p.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?") + '"' for p in pieces])
    exported = '__attribute__((visibility("default"))) '
    named = "".join([f"{exported}const char *const {op['symbol']}_manifest = ct_Manifest;\n"
                     for op in operators(manifest)])
    shared = ('extern __attribute__((weak, alias("ct_Manifest"), visibility("default"))) const char ct_manifest[sizeof '
              'ct_Manifest];\n')
    own = f"static const char ct_Manifest[] =\n{lines};\n"
    return f"\n/* What this library says of itself; the schema is published with caten. */\n{own}{named}{shared}"


@cache
def schema() -> dict[str, Any]:
    """The published JSON Schema."""
    loaded: dict[str, Any] = json.loads((Path(__file__).parents[1] / "manifest.schema.json").read_text("utf-8"))
    return loaded
