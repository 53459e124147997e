"""Who else has an operator of the library: the calls of NumPy, numba, torch, SciPy and onnxruntime that may be the
same. Whether they are is seen by their results."""
from __future__ import annotations

import importlib
import inspect
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import tomli

from caten.core.program import Attribute
from caten.errors import Place
from caten.frontend.generic_signature import tuples
from caten.frontend.op import OpProgram
from caten.testing.numpy_lambda import Lambda

from .processes import ROOT

PLACES = ("torch", "torch.nn.functional", "torch.special", "scipy.special", "scipy.fft", "scipy.linalg")
OPSET = 21
Call = Callable[[], Any]


def calls(name: str, table: Mapping[str, Any], op: OpProgram, arguments: Mapping[str, Any],
          inputs: list[Any]) -> Iterator[tuple[str, Callable[[], Call]]]:
    """By peer what makes a call: of the spec's reference, by NumPy and compiled by numba, and of functions with this
    name, or one that docs/coverage.toml has for it."""
    attributes = {a.name: tuples(json.loads(a.value)) for a in op.all(Attribute)}
    code = table["test"].get("code", "")
    if code.startswith("lambda") and "vectorize" not in code:
        Lambda(code, Place(name, 1, 1)).check_names()      # what a test may use, and no more
        reference = eval(code, {"np": np, "math": math})
        values = [attributes[p] if p in attributes else arguments[p] for p in inspect.signature(reference).parameters]
        yield "numpy", lambda: lambda: reference(*values)
        yield "numba", lambda: _by_numba(name, reference, values)
    for place in PLACES:
        try:
            module = importlib.import_module(place)
        except ImportError:
            continue
        for each in dict.fromkeys([name, *_names(name)]):
            function = getattr(module, each, None)
            if function is None or not callable(function):
                continue
            if place.startswith("torch"):
                given = [_tensor(x) for x in inputs]
                yield "torch", lambda function=function, given=given: lambda: function(*given)
            else:
                yield "scipy", lambda function=function: lambda: function(*inputs)
    for kind in _names(name, "ONNX"):
        yield "onnxruntime", lambda kind=kind: _by_onnxruntime(kind, inputs, attributes, len(table["outputs"]))


@cache
def _coverage() -> tuple[tuple[str, Mapping[str, str]], ...]:
    libraries = tomli.loads((ROOT / "docs" / "coverage.toml").read_text())["library"]
    return tuple([(each["title"], each["covered"]) for each in libraries])


def _names(name: str, title: str = "") -> list[str]:
    """What the operator is called elsewhere: in one library, or in all but ONNX."""
    return [theirs for library, covered in _coverage() if (library == title if title else library != "ONNX")
            for theirs, own in covered.items() if own == name]


def _tensor(x: Any) -> Any:
    import torch
    torch.set_num_threads(1)
    return torch.from_numpy(x) if isinstance(x, np.ndarray) else torch.tensor(x)


_compiled: dict[str, Any] = {}


def _by_numba(name: str, reference: Any, values: Sequence[Any]) -> Call:
    """The reference, compiled. Raises numba's error for what it cannot type."""
    import numba
    if name not in _compiled:
        try:
            function = numba.njit(reference)
            function(*values)
            _compiled[name] = function
        except Exception as problem:                       # once, and not for every size
            _compiled[name] = problem
    function = _compiled[name]
    if isinstance(function, Exception):
        raise function
    return lambda: function(*values)


def _by_onnxruntime(kind: str, inputs: Sequence[Any], attributes: Mapping[str, Any], outputs: int) -> Call:
    """A graph of one node, with the attributes that the operator and the node both have."""
    import onnx
    import onnxruntime
    from onnx import helper
    arrays = [np.asarray(x) for x in inputs]
    known = onnx.defs.get_schema(kind, OPSET).attributes
    given = {n: int(v) if isinstance(v, bool) else list(v) if isinstance(v, tuple) else v
             for n, v in attributes.items() if n in known and v is not None}
    if "keepdims" in known:
        given.setdefault("keepdims", 0)
    names = [f"x{n}" for n in range(len(arrays))]
    results = [f"y{n}" for n in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(kind, names, results, **given)], "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
         for n, a in zip(names, arrays, strict=True)], [onnx.ValueInfoProto(name=n) for n in results])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = dict(zip(names, arrays, strict=True))

    def call() -> Any:
        made = session.run(None, feeds)
        return made[0] if outputs == 1 else tuple(made)
    return call
