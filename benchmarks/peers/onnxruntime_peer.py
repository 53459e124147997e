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
from ..programs import HEADS, WIDTH
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


def convolved(inputs: str, output: str, *, size: int = 3) -> Any:
    """A convolution with a bias, whose images keep their size."""
    return node("Conv", inputs, output, kernel_shape=[size] * 2, pads=[size // 2] * 4)


def attention(p: Problem) -> Sequence[Any]:
    """Of heads, with the scaled keys' transpose as an operator of its own, as exporters write it."""
    masked = [node("Add", "s mask", "t")] if p.kind[0] == "c" else []
    return [node("Transpose", "k", "kt", perm=[0, 2, 1]), node("MatMul", "q kt", "p"), node("Mul", "p scale", "s"),
            *masked, node("Softmax", "t" if masked else "s", "a", axis=-1), node("MatMul", "a v")]


def block(p: Problem) -> Sequence[Any]:
    heads = [made for n in "qkv" for made in (
        node("MatMul", f"n w{n}", f"{n}0"), node("Reshape", f"{n}0 split", f"{n}1"),
        node("Transpose", f"{n}1", f"{n}2", perm=[1, 2, 0] if n == "k" else [1, 0, 2]))]
    return [node("LayerNormalization", "x g1 b1", "n", axis=-1, epsilon=EPSILON), *heads, node("MatMul", "q2 k2", "p"),
            node("Mul", "p scale", "s"), node("Add", "s mask", "t"), node("Softmax", "t", "a", axis=-1),
            node("MatMul", "a v2", "y0"), node("Transpose", "y0", "y1", perm=[1, 0, 2]),
            node("Reshape", "y1 joined", "y2"), node("MatMul", "y2 wo", "o"), node("Add", "o x", "r"),
            node("LayerNormalization", "r g2 b2", "z", axis=-1, epsilon=EPSILON), node("MatMul", "z w1", "z0"),
            node("Add", "z0 c1", "z1"), node("Gelu", "z1", "h", approximate="tanh"), node("MatMul", "h w2", "h0"),
            node("Add", "h0 c2", "h1"), node("Add", "h1 r")]


def constants(p: Problem) -> dict[str, Array]:
    """Constants of a graph that are no inputs of the problem."""
    match p.kind:
        case "column sum":
            return {"axes": np.array([0])}
        case "cross-entropy":
            return {"column": np.array([1]), "all": np.array([-1])}
        case "attention" | "causal attention" | "block":
            t = p.inputs[0].shape[-2]
            mask = np.where(np.tri(t, dtype=bool), 0, -np.inf).astype(np.float32)
            return {"scale": np.float32(0.125), "mask": mask, "split": np.array([t, HEADS, WIDTH]),
                    "joined": np.array([t, HEADS * WIDTH])}
    return {}


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
    "softmax of columns": ("x", "", lambda p: [node("Softmax", "x", axis=0)]),
    "rmsnorm": ("x g", "", lambda p: [node("SimplifiedLayerNormalization", "x g", axis=-1, epsilon=EPSILON)]),
    "residual layernorm": ("x r g b", "", lambda p: [
        node("Add", "x r", "z"), node("LayerNormalization", "z g b", axis=-1, epsilon=EPSILON)]),
    "gelu(x W + b)": ("x w b", "", lambda p: [
        node("MatMul", "x w", "m"), node("Add", "m b", "z"), node("Gelu", "z", approximate="tanh")]),
    "conv + bias + relu": ("x w b", "w b", lambda p: [convolved("x w b", "z"), node("Relu", "z")]),
    "1x1 conv + bias + relu": ("x w b", "w b", lambda p: [convolved("x w b", "z", size=1), node("Relu", "z")]),
    "block of ResNet": ("x w b v d", "w b v d", lambda p: [
        convolved("x w b", "y"), node("Relu", "y", "z"), convolved("z v d", "r"), node("Add", "r x", "s"),
        node("Relu", "s")]),
    "attention": ("q k v", "", attention), "causal attention": ("q k v", "", attention),
    "cross-entropy": ("x labels", "", lambda p: [
        node("LogSoftmax", "x", "l", axis=1), node("Unsqueeze", "labels column", "at"),
        node("GatherElements", "l at", "g", axis=1), node("Neg", "g", "n"), node("Reshape", "n all")]),
    "mlp": ("x w1 b1 w2 b2", "", lambda p: [
        node("Gemm", "x w1 b1", "h"), node("Relu", "h", "z"), node("Gemm", "z w2 b2", "o"),
        node("Softmax", "o", axis=-1)]),
    "block": ("x g1 b1 wq wk wv wo g2 b2 w1 c1 w2 c2", "", block),
}


def session(p: Problem) -> Call:
    names, fixed, nodes = GRAPHS[p.kind]
    arrays: dict[str, Array] = dict(zip(names.split(), p.inputs, strict=True))
    known = {n: arrays.pop(n) for n in fixed.split()}
    if p.kind == "1x1 conv + bias + relu":
        known["w"] = known["w"][:, :, None, None]
    made_of = nodes(p)
    used = {name for n in made_of for name in n.input}
    known |= {n: a for n, a in constants(p).items() if n in used}
    shape = p.output.shape
    graph = helper.make_graph(
        made_of, "g", [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                       for n, a in arrays.items()],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, shape)],
        [onnx.numpy_helper.from_array(a, n) for n, a in known.items()])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = _threads, 1, 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0" if _threads == 1 else "1")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    made = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding, out = made.io_binding(), empty(*shape)
    for n, a in arrays.items():
        binding.bind_input(n, "cpu", 0, a.dtype, a.shape, a.ctypes.data)
    binding.bind_output("Y", "cpu", 0, np.float32, shape, out.ctypes.data)

    def call() -> Array:
        made.run_with_iobinding(binding)
        return out
    return call


CALLS = dict.fromkeys(GRAPHS, session)
