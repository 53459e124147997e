"""The instances of a composite that a command asks for, and how their names differ in one library."""
from __future__ import annotations

import re
from collections.abc import Sequence

from ..options import Instance, Options
from .composite import named
from .generic_signature import tensors

Asked = tuple[Instance | None, str]


def instances_of(name: str, texts: Sequence[str], has_attributes: bool, options: Options) -> list[Asked]:
    """The instances of a composite, each with the end of its name: where there are several, `Softmax_f32_2d` and
    `Softmax_f32_2d_axis_0`. One without an instance if nothing is asked for, or there is nothing to choose. `texts`:
    with its declarations."""
    is_generic = has_attributes or any(t.is_generic for t in tensors(texts))
    if not options.instances or not is_generic or (options.only and not named(name, options.only)):
        return [(None, "")]
    if len(options.instances) == 1:
        return [(options.instances[0], "")]
    asked: dict[str, Instance] = {}
    for instance in options.instances:
        end, count = _end(instance), 2
        while end in asked:
            end, count = f"{_end(instance)}_{count}", count + 1
        asked[end] = instance
    return [(instance, end) for end, instance in asked.items()]


def _end(instance: Instance) -> str:
    """What tells an instance from others, as a part of an identifier."""
    kinds = dict.fromkeys([f"{dtype}_{len(shape)}d" for _, dtype, shape in instance.arrays])
    words = [*kinds, *[f"{name}_{value}" for name, value in instance.attributes]]
    return "_" + re.sub(r"\W+", "_", "_".join(words).replace("-", "m").lower()).strip("_")
