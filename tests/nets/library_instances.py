"""Random instances of the library's operators: element types of the class, ranks 0 to 5, axes that broadcast, extents of 0 and 1."""
from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tomli

from caten.core.dtypes import DTYPES, SPELLINGS
from caten.core.numpy_types import named
from caten.frontend.generic_signature import ANY_AXES, CLASSES, INFERRED, Tensor, tensors
from caten.frontend.operator_library import Entry

AXES = ("axisP", "axisQ", "axisR", "axisS", "axisT")
# Types with which a decision of the operator falls elsewhere than in the reference, which is computed in float64.
WIDE = {"threshold", "solve", "quantile"}
# The reference is no more exact than the operator.
SHORT = {"lgamma", "digamma", "erfinv"}
EMPTY = re.compile(r"\b\w+ = 0\b")


def operators(entries: tuple[Entry, ...]) -> Iterator[Entry]:
    """Those whose test cases draw all their inputs, so that other types and shapes are as good."""
    for entry in entries:
        table = entry.table
        if table["inputs"] and not any("input" in case or "values" in case for case in table["test"]["case"]):
            yield entry


def spec_of(entry: Entry, draw: random.Random, count: int) -> str:
    """The operator's spec with `count` drawn cases in place of its own."""
    table = entry.table
    text = re.sub(r"\[\[composite\.test\.case\]\]\n(?:[^\[\n].*\n|\n(?!\[))*|\[composite\.bench[\w.]*\]\n(?:[^\[\n].*\n|\n(?!\[))*", "", entry.source)
    for _ in range(count):
        instance, sizes = _case(entry.name, table, draw)
        said = ", ".join([f"{name} = {extent}" for name, extent in sizes.items()])
        text += (f"\n[[composite.test.case]]\nname = {json.dumps(f'{instance}: {said}')}\n"
                 + (f"instance = {json.dumps(instance)}\n" if instance else "") + f"sizes = {{ {said} }}\n")
    return text


def _case(name: str, table: Mapping[str, Any], draw: random.Random) -> tuple[str, dict[str, int]]:
    """The instance and the sizes: one of the operator's own cases, with other types, another rank and other extents."""
    declared = tensors(table["inputs"])
    own = draw.choice(table["test"]["case"])
    words = dict([word.split("=", 1) for word in own.get("instance", "").split()])
    tensor_names = {t.name for t in declared}
    attributes = {k: v for k, v in words.items() if k not in tensor_names}
    has_axes = "axis" in " ".join([*attributes, *table.get("attributes", ())]) or "axis=-1" in table["implementation"]["code"]
    least = 0 if not has_axes else 3 if re.search(r"axis\S*=\[", " ".join([f"{k}={v}" for k, v in attributes.items()])) else 2 if "axes" in attributes else 1
    block = AXES[:draw.randint(least, 5)] if all(not t.named for t in declared) else AXES[:draw.randint(least, max(least, 3))]
    anys = [t for t in declared if ANY_AXES in t.shape]
    if anys and isinstance(axis := _axis(table, attributes), int):
        attributes["axis"] = str(draw.randrange(-len(block), len(block)) if block else axis)
    widest = draw.choice(anys).name if anys else ""
    types, instance, used = dict[str, str](), list[str](), set[str]()
    for t in declared:
        if not t.is_generic:
            continue
        dtype = types.setdefault(t.variable, _type(name, t.variable, draw)) if t.variable else DTYPES[SPELLINGS[t.word.lower()]].numpy
        shape = _shape(t, block, t.name == widest or len(anys) == 1, draw)
        if shape is None:
            if t.name not in words:
                continue                                  # as without an instance
            instance.append(f"{t.name}={dtype}[{words[t.name].split('[', 1)[1]}")
        else:
            used.update(set(AXES) & set(shape))
            instance.append(f"{t.name}={dtype}[{','.join(shape)}]")
    sizes = {n: 0 if draw.random() < .06 else draw.randint(1, 7) for n in sorted(used)}
    known = set(re.findall(r"[A-Za-z_]\w*", " ".join([*[" ".join(t.shape) for t in declared], *[i.split("[", 1)[1] for i in instance]])))
    for n, extent in own.get("sizes", {}).items():
        if n in known or len(instance) < sum([t.is_generic for t in declared]):
            sizes.setdefault(n, extent if draw.random() < .5 else draw.randint(1, 8))
    return " ".join([*instance, *[f"{k}={v}" for k, v in attributes.items()]]), sizes


def _axis(table: Mapping[str, Any], attributes: Mapping[str, str]) -> int | None:
    """The attribute `axis`, if it is an integer."""
    for text in (*[f"{k} = {v}" for k, v in attributes.items()], *table.get("attributes", ())):
        if text.startswith("axis = "):
            return int(text[7:]) if re.fullmatch(r"-?\d+", text[7:]) else None
    return None


def _type(operator: str, word: str, draw: random.Random) -> str:
    kinds, dense = CLASSES.get(word.lower(), CLASSES["dense"])[0], word.lower() not in CLASSES or word.lower() == "dense"
    found = [d.numpy for d in DTYPES.values() if d.kind in kinds and (dense or d.bits > 4)]
    if operator in WIDE:
        found = [n for n in found if n not in ("float16", "bfloat16")]
    if operator in SHORT:
        found = [n for n in found if n != "float64"]
    kind = draw.choice(sorted({DTYPES[SPELLINGS[n]].kind for n in found}))
    return draw.choice([n for n in found if DTYPES[SPELLINGS[n]].kind == kind])


def _shape(t: Tensor, block: tuple[str, ...], is_widest: bool, draw: random.Random) -> list[str] | None:
    """A shape of its own, or None for that of the case."""
    if t.shape == (INFERRED,) or any(entry.startswith("(") for entry in t.shape):
        return None
    if ANY_AXES not in t.shape:
        return list(t.shape)
    mine = list(block) if is_widest or draw.random() < .5 else list(block[draw.randint(0, len(block)):])
    mine = ["1" if draw.random() < .15 else axis for axis in mine]
    at = t.shape.index(ANY_AXES)
    return [*t.shape[:at], *mine, *t.shape[at + 1:]]


def arguments(entry: Entry, draw: random.Random) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Arrays for a drawn instance, and its attributes."""
    table = entry.table
    instance, sizes = _case(entry.name, table, draw)
    words = dict([word.split("=", 1) for word in instance.split()])
    arrays = []
    types: dict[str, str] = {}                       # of a type variable, by the arrays that the instance names
    for t in tensors(table["inputs"]):
        usual = types.get(t.word, DTYPES[SPELLINGS.get(t.word.lower(), "f32")].numpy)
        dtype, _, shape = words.pop(t.name, f"{usual}[{','.join(t.shape)}]").partition("[")
        types.setdefault(t.word, dtype)
        extents = [sizes.setdefault(e, 4) if not e.isdigit() else int(e) for e in shape.rstrip("]").split(",") if e]
        values = np.random.default_rng(draw.randrange(1 << 30)).integers(1, 9, extents)
        arrays.append(np.asarray(values, dtype=named(dtype)))
    return arrays, {k: tomli.loads(f"x = {v}")["x"] for k, v in words.items()}
