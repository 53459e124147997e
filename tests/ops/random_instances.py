"""Random test cases of operators of the library: element types, ranks, extents of 1 that broadcast, empty extents."""
from __future__ import annotations

import random
from collections.abc import Mapping

import tomli

from caten.core.dtypes import DTYPES
from caten.frontend.generic_signature import CLASSES, Tensor, tensors
from caten.frontend.operator_library import Entry

EXTENTS = (0, 1, 2, 3, 5, 8)
TYPES = {"bool": ("bool",), "int": ("i8", "i32", "i64"), "uint": ("u8", "u32"), "float": ("f16", "bf16", "f32", "f64"), "complex": ("c64", "c128")}


def cases(entry: Entry, count: int, seed: int) -> list[tuple[str, Mapping[str, int]]]:
    """Instances and sizes, as `--instance` and `sizes` of a case have them, with the attributes of the operator's own
    cases. None for an operator whose own cases have given arrays, or whose shapes are `[...]`."""
    table = tomli.loads(entry.source)["composite"][0]
    declared = tensors([*table["inputs"], *table["outputs"]])
    own = table.get("test", {}).get("case", [])
    if any("input" in case for case in own) or not own or table.get("test", {}).get("requirements"):
        return []
    inputs = [t for t in declared if t.name in [text.split("{")[0] for text in table["inputs"]]]
    if not any(t.is_generic for t in inputs) or any(t.shape == ("...",) or "(" in " ".join(t.shape) for t in inputs):
        return []
    draw, found = random.Random(f"{entry.name} {seed}"), list[tuple[str, Mapping[str, int]]]()
    for n in range(count):
        attributes = " ".join([w for w in own[n % len(own)].get("instance", "").split() if "[" not in w.split("=")[1] or "{" in w]) if n < len(own) else ""
        least = 1 if "axis" in attributes or any(a.startswith("axis") for a in table.get("attributes", ())) else 0
        instance, sizes = _drawn(draw, inputs, least)
        found.append((f"{instance} {attributes}".strip(), sizes))
    return found


def _drawn(draw: random.Random, inputs: list[Tensor], least: int) -> tuple[str, dict[str, int]]:
    rank, sizes, words = draw.randint(least, 4), dict[str, int](), list[str]()
    block = [f"E{n}" for n in range(rank)]
    sizes = {name: draw.choice(EXTENTS) for name in [*block, *{name for t in inputs for name in t.shape if name[0].isalpha()}]}
    types = {word: draw.choice([d for kind in sorted(CLASSES.get(word.lower(), CLASSES["dense"])[0]) for d in TYPES[kind]]) for word in {t.word for t in inputs} if len(word) <= 2 or word.lower() in CLASSES}
    broadcast = draw.random() < 0.5 and len(inputs) > 1
    for t in inputs:
        if t.variable is None and "~" not in t.shape:
            continue
        shape = list(t.shape)
        if "~" in shape:
            own = [extent if not broadcast or draw.random() < 0.6 else "1" for extent in block[draw.randint(0, rank) if broadcast and draw.random() < 0.3 else 0:]]
            at = shape.index("~")
            shape[at:at + 1] = own
        words.append(f"{t.name}={DTYPES[types[t.word]].numpy if t.word in types else t.word}[{','.join(shape)}]")
    used = {extent for word in words for extent in word.split("[")[1].rstrip("]").split(",")} | {n for t in inputs for n in t.shape}
    return " ".join(words), {name: value for name, value in sizes.items() if name in used}


def with_cases(entry: Entry, drawn: list[tuple[str, Mapping[str, int]]]) -> str:
    """The spec of an operator with these test cases instead of its own."""
    text = entry.source.split("[[composite.test.case]]")[0].split("[composite.bench]")[0]
    return text + "".join([f'\n[[composite.test.case]]\nname = "drawn {n}"\ninstance = "{instance.replace(chr(34), chr(92) + chr(34))}"\nsizes = {{ {", ".join(f"{k} = {v}" for k, v in sizes.items())} }}\nexpect = "reference"\n'
                           for n, (instance, sizes) in enumerate(drawn)])
