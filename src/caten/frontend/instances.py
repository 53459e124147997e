"""The instances of a composite that a command asks for, and how their names differ in one library."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from ..errors import CatenError
from ..options import Instance, Options
from .composite import named
from .generic_signature import read_instance, tensors

Asked = tuple[Instance | None, str]
INSTANCE = re.compile(r"[a-z]+\d*_\d+d(_|\Z)")             # what the name of an instance ends with: f32_2d


def instances_of(name: str, texts: Sequence[str], has_attributes: bool, options: Options,
                 cases: Sequence[str | None] = ()) -> list[Asked]:
    """The instances of a composite, each with the end of its name: where there are several, `Softmax_f32_2d` and
    `Softmax_f32_2d_axis_0`. One without an instance if nothing is asked for, or there is nothing to choose. `texts`:
    with its declarations. `cases`: the instances of its test cases."""
    is_generic = has_attributes or any(t.is_generic for t in tensors(texts))
    if not is_generic or (options.only and not named(name, options.only)):
        return [(None, "")]
    instances = [i for i in options.instances if not i.of or named(name, (i.of,))]
    if not instances and options.case_instances:
        return _of_cases(cases)
    if not instances:
        return [(None, "")]
    if len(instances) == 1:
        return [(instances[0], "")]
    return _named(instances)


def cases_of(table: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The instances of a composite that its test cases name, and the cases of each, without reading the body. `table`:
    the `[[composite]]` of a spec, which has no errors."""
    name, cases = str(table["name"]), [(case.get("instance"), case["name"]) for case in table["test"]["case"]]
    texts = [str(text) for part in ("inputs", "outputs") for text in table.get(part, ())]
    asked = instances_of(name, texts, "attributes" in table, Options(case_instances=True), [own for own, _ in cases])
    known = {text: None if text is None else repr(read_instance(text)) for text, _ in cases}
    for instance, end in asked:
        wanted = None if instance is None else repr(instance)
        yield from [(name + end, case) for text, case in cases if known[text] == wanted]


def _of_cases(cases: Sequence[str | None]) -> list[Asked]:
    """The instances of test cases; that of no instance where a case has none."""
    found: list[Instance] = []
    for text in dict.fromkeys(cases):
        with suppress(CatenError):                           # the reader of the case tells what is wrong
            found += [read_instance(text)] if text is not None else []
    return [*([(None, "")] if None in cases or not found else []), *_named(found)]


def _named(instances: Sequence[Instance]) -> list[Asked]:
    """Instances, with names that differ."""
    asked: dict[str, Instance] = {}
    for instance in instances:
        end, count = name_end(instance), 2
        while end in asked:
            end, count = f"{name_end(instance)}_{count}", count + 1
        asked[end] = instance
    return [(instance, end) for end, instance in asked.items()]


def is_instance(name: str, of: str) -> bool:
    """Is a name that of an instance, for some element types and numbers of axes, of the operator with the other one?"""
    return name.startswith(f"{of}_") and INSTANCE.match(name[len(of) + 1:]) is not None


def name_end(instance: Instance) -> str:
    """What tells an instance from others, as a part of an identifier."""
    kinds = dict.fromkeys([f"{dtype}_{len(shape)}d" for _, dtype, shape in instance.arrays])
    words = [*kinds, *[f"{name}_{value}" for name, value in instance.attributes]]
    return "_" + re.sub(r"\W+", "_", "_".join(words).replace("-", "m").lower()).strip("_")
