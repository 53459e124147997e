"""The names of several instances of a generic spec in one library."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..options import Instance
from .composite import Composite


def with_instance_names(composites: Sequence[Composite], instances: Sequence[Instance]) -> list[Composite]:
    """Where several instances of one composite are asked for, their names tell them apart: Softmax_f32_2d, and
    Softmax_f32_2d_axis_0."""
    if len(instances) < 2:
        return list(composites)
    counts = Counter([c.name for c in composites])
    keys = iter([_key(i) for i in instances] * len(composites))
    seen: Counter[str] = Counter()
    made: list[Composite] = []
    for c in composites:
        name = f"{c.name}_{next(keys)}" if counts[c.name] > 1 else c.name
        seen[name] += 1
        made.append(replace(c, name=name if seen[name] == 1 else f"{name}_{seen[name]}"))
    return made


def _key(instance: Instance) -> str:
    """What tells an instance from others, as a part of an identifier."""
    words = [f"{dtype}_{len(shape)}d" for _, dtype, shape in instance.arrays]
    words = list(dict.fromkeys(words)) + [f"{name}_{value}" for name, value in instance.attributes]
    return re.sub(r"\W+", "_", "_".join(words).replace("-", "m").lower()).strip("_")
