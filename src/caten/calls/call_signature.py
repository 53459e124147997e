"""The arguments of a call: their order and names, how outputs may be given, and errors for a wrong set of arguments."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.dtypes import DTYPES
from ..errors import amount, did_you_mean, error
from ..frozen import frozen
from . import scalar_arguments

OUT = "out"


@frozen
class Argument:
    """An array or a scalar that an operator takes. `dtype`: the name of the element type in numpy (or in ml_dtypes).
    `shape`: an extent for each axis, an integer or a formula over sizes (`M`, `(* 2 N)`); a scalar has none. `order`:
    the axes from slowest to fastest. `direction`: `in`, `out` or `inout`."""

    name: str
    kind: str                                # tensor | scalar
    dtype: str
    shape: tuple[int | str, ...]
    order: tuple[int, ...]
    direction: str


def argument(described: Mapping[str, Any]) -> Argument:
    """One argument of a manifest."""
    return Argument(described["name"], described["kind"], DTYPES[described["dtype"]].numpy, tuple(described["shape"]),
                    tuple(described["order"]),
                    described["direction"])


class CallSignature:
    """The arguments of an operator, from its manifest: `inputs` in the order of the spec; `outs`, the outputs that are
    no inputs, in the order of the spec's outputs; `leading`, all of these in the order of the C function; `sizes` by
    name; `passed`, the sizes whose product the C function takes, for each size that it takes."""

    def __init__(self, op: Mapping[str, Any]):
        self.name: str = op["op"]
        self.leading: list[Mapping[str, Any]] = [a for a in op["arguments"] if a["kind"] in ("tensor", "scalar")]
        self.inputs = [a for a in self.leading if a["kind"] == "scalar" or a["direction"] != "out"]
        self.outs = [a for n in op["outputs"] for a in self.leading if a["name"] == n and a["direction"] == "out"
                     and a["kind"] == "tensor"]
        self.sizes: list[str] = [a["name"] for a in op["arguments"] if a["kind"] == "size"]
        groups = {group[0]: tuple(group) for group in op.get("any_axes", {}).values()}
        later = {name for group in groups.values() for name in group[1:]}
        self.passed = [groups.get(name, (name,)) for name in self.sizes if name not in later]
        self._order = [a["name"] for a in (*self.inputs, *self.outs)]
        self._out_names = [a["name"] for a in self.outs]
        self._in_place: list[str] = [n for n in op["outputs"] if n not in self._out_names]
        self.takes_out = bool(self.outs) and OUT not in [a["name"] for a in self.inputs]

    def arranged(self, given: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, int]]:
        """The values in the order of the C function, None for an output that was not given; and the sizes that were
        given. E700 for a wrong set of arguments, E713 for a wrong number of outputs."""
        if len(given) > len(self._order):
            raise error("E700", f"{self.name} takes {amount(len(self._order), 'argument')}, {', '.join(self._order)}; "
                                f"{len(given)} were given")
        values: dict[str, Any] = dict(zip(self._order, given, strict=False))
        sizes: dict[str, int] = {}
        outs: Any = None
        for name, value in named.items():
            if name == OUT and self.takes_out and (OUT not in self._order or isinstance(value, tuple | list | Mapping)):
                outs = value
            elif name in values:
                raise error("E700", f"{self.name}: {name} was given twice")
            elif name in self._order:
                values[name] = value
            elif name in self.sizes:
                sizes[name] = scalar_arguments.size(name, value, self.name)
            else:
                known = [*self._order, *self.sizes, *([OUT] if self.takes_out else [])]
                in_place = f"; the call updates {', '.join(self._in_place)} in place" if name == OUT else ""
                raise error("E700", f"{self.name} has no argument {name}", hint=did_you_mean(name, known)
                            or f"it takes {', '.join(known)}{in_place}")
        if missing := [a["name"] for a in self.inputs if a["name"] not in values]:
            raise error("E700", f"{self.name}: {', '.join(missing)} missing; it takes "
                                f"{', '.join([a['name'] for a in self.inputs])}")
        for name, value in self._outputs(outs):
            if values.get(name) is not None:
                raise error("E700", f"{self.name}: the output {name} was given twice, once in out=")
            values[name] = value
        return [values.get(a["name"]) for a in self.leading], sizes

    def _outputs(self, outs: Any) -> Iterator[tuple[str, Any]]:
        """The outputs in `out=`, by name; those that are None are left out."""
        if outs is None:
            return
        if isinstance(outs, Mapping):
            for name in outs:
                if name not in self._out_names:
                    inputs = [a["name"] for a in self.inputs]
                    hint = (f"{name} is an input: give it in its place" if name in inputs else
                            did_you_mean(str(name), self._out_names) or f"it takes {', '.join(self._out_names)}")
                    raise error("E700", f"{self.name}: out= has the key {name!r}, which is no output that it takes",
                                hint=hint)
            outs = [outs.get(name) for name in self._out_names]
        elif not isinstance(outs, tuple | list):
            outs = (outs,)
        if len(outs) != len(self.outs):
            raise error("E713", f"{self.name}: out= takes {amount(len(self.outs), 'array')}, "
                                f"{', '.join(self._out_names)}; "
                                f"{len(outs)} were given",
                        hint="a tuple gives all of them in this order, with None for one to be allocated; a dict "
                             "gives them by name")
        yield from [(name, value) for name, value in zip(self._out_names, outs, strict=True) if value is not None]
