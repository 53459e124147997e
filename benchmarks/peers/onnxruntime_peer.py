"""onnxruntime: a graph of a few nodes, its inputs and its output bound once; weights of convolutions are constants,
which it may pack before."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from ..problems import EPSILON, Array, Problem, empty
from . import Call

VERSION = onnxruntime.__version__
_threads = 1


def prepare(threads: int) -> None:
    global _threads
    _threads = threads


def node(kind: str, inputs: str, output: str = "Y", **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), [output], **attributes)


def conv(p: Problem) -> Sequence[Any]:
    c = p.constants
    return [node("Conv", "x w", kernel_shape=[c["k"]] * 2, strides=[c["stride"]] * 2, pads=[c["pad"]] * 4)]


# Kind -> the names of the inputs, those of them that are constants, and the nodes.
GRAPHS: Mapping[str, tuple[str, str, Callable[[Problem], Sequence[Any]]]] = {
    "matmul": ("a b", "", lambda p: [node("MatMul", "a b")]),
    "gelu": ("x a b", "", lambda p: [node("Mul", "x a", "m"), node("Add", "m b", "z"),
                                     node("Gelu", "z", approximate="tanh")]),
    "softmax": ("x", "", lambda p: [node("Softmax", "x", axis=-1)]),
    "layernorm": ("x g b", "", lambda p: [node("LayerNormalization", "x g b", axis=-1, epsilon=EPSILON)]),
    "sum": ("x", "", lambda p: [node("ReduceSum", "x", keepdims=1)]),
    "column sum": ("x", "", lambda p: [node("ReduceSum", "x axes", keepdims=0)]),
    "transpose": ("x", "", lambda p: [node("Transpose", "x", perm=[1, 0])]),
    "conv": ("x w", "w", conv),
    "sin": ("x", "", lambda p: [node("Sin", "x")]),
}


def session(p: Problem) -> Call:
    names, fixed, nodes = GRAPHS[p.kind]
    arrays: dict[str, Array] = dict(zip(names.split(), p.inputs, strict=True))
    constants = {n: arrays.pop(n) for n in fixed.split()} | ({"axes": np.array([0])} if p.kind == "column sum" else {})
    shape = p.output.shape
    graph = helper.make_graph(
        nodes(p), "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in arrays.items()],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, shape)],
        [onnx.numpy_helper.from_array(a, n) for n, a in constants.items()])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = _threads, 1, 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0" if _threads == 1 else "1")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    made = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding, out = made.io_binding(), empty(*shape)
    for n, a in arrays.items():
        binding.bind_input(n, "cpu", 0, np.float32, a.shape, a.ctypes.data)
    binding.bind_output("Y", "cpu", 0, np.float32, shape, out.ctypes.data)

    def call() -> Array:
        made.run_with_iobinding(binding)
        return out
    return call


CALLS = dict.fromkeys(GRAPHS, session)
