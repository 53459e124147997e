"""What users of other libraries write, and what daten has for it: said where a name is not known."""
from __future__ import annotations

import numpy as np

from caten.frontend import operator_library

_CONVERSION = "x.astype(\"{}\") converts"
METHODS = {
    **dict.fromkeys(("view", "view_as", "reshape_as", "unflatten"), "x.reshape(…) gives another shape"),
    "permute": "x.transpose(1, 0) permutes axes", "t": "x.T is the transpose", "adjoint": "x.mT is the transpose",
    "unsqueeze": "x[:, None] and np.expand_dims(x, 1) give a new axis",
    **dict.fromkeys(("expand", "expand_as"), "np.broadcast_to(x, shape) repeats axes"),
    "repeat_interleave": "x.repeat(2, axis=0) repeats elements",
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max"), "x.clip(low, high) limits elements"),
    "gather": "x.take_along_axis(index, axis=1) takes elements along an axis",
    "index_select": "x.take(index, axis=0) takes rows",
    "masked_select": "x[mask] takes the elements where a mask holds",
    **dict.fromkeys(("index_add", "index_add_"), "x.scatter_add(index, rows) adds rows, segment_sum sums groups"),
    **dict.fromkeys(("mm", "bmm", "mv"), "x @ y multiplies matrices, also many of them"),
    **dict.fromkeys(("split", "chunk", "unbind"), "np.split(x, 2, axis=1) and np.array_split cut an axis into parts"),
    "cat": "np.concatenate([x, y], axis=0) joins tensors", "clone": "x.copy() copies",
    "data": "x.detach() has no gradient",
    **dict.fromkeys(("contiguous", "cpu", "cuda", "gpu", "is_cuda", "is_contiguous"),
                    "leave it out: tensors are contiguous arrays on the CPU"),
    "at": "x[index] = value and x[index] += value change elements of x",
    **dict.fromkeys(("amax", "amin"), "x.max(axis=1) and x.min(axis=1) reduce axes"),
    **{name: f"write x {sign} y" for name, sign in (
        ("mul", "*"), ("div", "/"), ("sub", "-"), ("eq", "=="), ("ne", "!="), ("lt", "<"), ("gt", ">"), ("le", "<="),
        ("ge", ">="))},
    "neg": "write -x", "addmm": "write b + x @ y", "baddbmm": "write b + x @ y", "narrow": "x[:, start:stop] is a part",
    **dict.fromkeys(("block_until_ready", "eval"), "x.realize() computes the elements"),
    **dict.fromkeys(("index_put", "index_put_"), "x[index] = value changes elements of x"),
    "retain_grad": "gradients(loss, [x]) gives the gradient of any tensor",
    "register_hook": "a class derived from daten.Func has a backward of its own, which may change gradients",
    "element_size": "x.itemsize is the size of an element in bytes", "nelement": "x.size is the number of elements",
    "detach_": "x.detach() has no gradient", "tobytes": "x.numpy() has it",
    "new_zeros": "daten.array_api.zeros makes tensors, and x.zeros_like() does",
    "unique": "daten.array_api.unique_values does it",
    **dict.fromkeys(("to", "type", "type_as"), _CONVERSION.format("float32")),
    **{name: _CONVERSION.format(own) for name, own in (
        ("float", "float32"), ("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16"), ("int", "int32"),
        ("long", "int64"), ("bool", "bool"), ("float16", "float16"))},
    "dim": "x.ndim is the number of axes", "numel": "x.size is the number of elements",
    **dict.fromkeys(("copy_", "zero_", "fill_", "fill", "add_", "sub_", "mul_", "div_", "clamp_"),
                    "x.assign(value) changes all elements, x[…] = value some"),
    "requires_grad_": "set x.requires_grad = True", "zero_grad": "set x.grad = None",
    "interpolate": "x.resize_nearest(size=(8, 8)) and x.resize_bilinear do it for images",
    "is_leaf": "a tensor with x.requires_grad has x.grad after backward"}
ATTRIBUTES = {"dim": "axis", "dims": "axis", "keepdim": "keepdims", "unbiased": "ddof", "correction": "ddof",
              "label_smoothing": "smoothing", "kernel_size": "kernel", "num_classes": "depth",
              "output_size": "size", "temperature": "tau", "negative_slope": "alpha", "normalized_shape": "weight"}
_ARRAYS = "daten.array_api.{0} makes tensors, and Tensor(np.{0}(…)) does"
FUNCTIONS = {
    **{name: _ARRAYS.format(name) for name in ("zeros", "ones", "full", "arange", "linspace", "eye")},
    **dict.fromkeys(("tensor", "as_tensor", "from_numpy", "array", "asarray"), "Tensor(…) makes a tensor of them"),
    **dict.fromkeys(("randn", "normal", "rand", "randint"), "daten.random has normal, uniform and randint"),
    "manual_seed": "daten.random.seed(number)", "cat": "np.concatenate takes tensors",
    **dict.fromkeys(("randperm", "permutation"), "daten.random.permutation"), "bernoulli": "daten.random.bernoulli",
    **dict.fromkeys(("PRNGKey", "key", "Generator"), "daten.random.seed(number) begins the sequence of what is drawn"),
    **dict.fromkeys(("inference_mode", "set_grad_enabled"), "with daten.no_grad(): nothing is kept for gradients"),
    "enable_grad": "leave it out: gradients are recorded outside of daten.no_grad()",
    "autograd": "daten.gradients(loss, tensors) gives gradients, and a class derived from daten.Func has its own",
    **dict.fromkeys(("custom_vjp", "custom_jvp"), "a class derived from daten.Func has a backward of its own"),
    **dict.fromkeys(("vjp", "pullback"), "daten.gradients(y, [x], gradient) gives it"),
    "jvp": "daten.gradients of daten.gradients(y, [x], u) with respect to u gives it",
    **dict.fromkeys(("cuda", "device", "device_put", "devices"), "leave it out: tensors are on the CPU"),
    "compile": "daten.jit(function) traces and compiles", "remat": "daten.checkpoint(function) computes values again",
    "stop_gradient": "x.detach() has no gradient", "lax": "loops and conditions are those of Python, np.where chooses",
    **dict.fromkeys(("scan", "fori_loop", "while_loop"),
                    "loops of Python are part of the graph, and in a function of @caten.op they are compiled as loops"),
    "cond": "np.where(condition, a, b) chooses", "numpy": "functions of NumPy take tensors: np.exp(x)",
    "block_until_ready": "daten.realize(x, y) computes tensors",
    **{name: f"it is written as a text: x.astype(\"{name}\")" for name in (
        "float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool")},
    **{name: f"daten.nn.{own}" for name, own in (
        ("Module", "Module"), ("Parameter", "parameter"), ("Linear", "Linear"), ("Sequential", "Sequential"))},
    **dict.fromkeys(("is_tensor",), "isinstance(x, daten.Tensor)"), "clamp": "x.clip(low, high) limits elements",
    "unsqueeze": "x[:, None] and np.expand_dims(x, 1) give a new axis", "mm": "x @ y multiplies matrices",
    "bmm": "x @ y multiplies matrices, also many of them", "split": "np.split(x, 2, axis=1) cuts an axis into parts",
    **dict.fromkeys(("hessian", "jacobian", "jacfwd", "jacrev"),
                    "gradients are tensors: np.stack([gradients(g, [x])[0] for g in gradients(y, [x])[0]])"),
    "vmap": "operators take arrays with axes before those of the formula",
    **dict.fromkeys(("save", "load"), "daten.weights.save and load keep the values of state_dict()"),
    "functional": "operators are methods: x.relu(), x.softmax(axis=-1)"}
_SPEC = "a module is a spec that does it: lang = \"python\", code = \"return x[:, 1:]\""
OPERATORS = {                            # in programs in TOML
    "sub": "(- x y) subtracts", "mul": "(* x y) multiplies", "div": "(/ x y) divides", "neg": "(negative x)",
    "mm": "(matmul x y) multiplies matrices", "bmm": "(matmul x y) multiplies matrices, also many of them",
    **dict.fromkeys(("slice", "index", "getitem", "get", "aref", "split", "chunk", "select"), _SPEC),
    **dict.fromkeys(("cat", "concat"), "(concatenate x y :axis 1) joins arrays"),
    **dict.fromkeys(("mse", "mae"), "(mse_loss x y) and (l1_loss x y) are losses"),
    **dict.fromkeys(("permute", "swapaxes"), "(transpose x :axes (0 2 1)) permutes axes"),
    **dict.fromkeys(("unsqueeze", "view", "unflatten"), "(reshape x :shape (B 1 T)) gives another shape"),
    **dict.fromkeys(("astype", "float", "to"), "(cast x :dtype float32) converts"),
    "dense": "(linear x weight bias) is x · weight transposed + bias"}
MODULES = {
    **dict.fromkeys(("cuda", "cpu"), "leave it out: parameters are on the CPU"),
    **{name: f"module.to(\"{own}\") converts" for name, own in (
        ("half", "float16"), ("float", "float32"), ("double", "float64"), ("bfloat16", "bfloat16"))},
    **dict.fromkeys(("children", "named_children", "named_modules"), "module.modules() gives this and all inside it"),
    **dict.fromkeys(("buffers", "named_buffers"), "module.named_tensors() gives parameters and buffers"),
    **dict.fromkeys(("register_buffer", "register_parameter", "add_module", "register_module"),
                    "tensors and modules that are attributes belong to a module: self.name = value"),
    "apply": "for part in module.modules(): … does something with each",
    "requires_grad_": "for p in module.parameters(): p.requires_grad = False freezes them",
    **dict.fromkeys(("register_forward_hook", "register_full_backward_hook"), "derive a class and override forward"),
    "init": "parameters are attributes of the module, and are drawn when it is made"}
_RATE = "daten.optim.cosine and linear are schedules, and any function is: optimizer.lr = rate(step)"
_CLIP = "clip_norm(parameters, 1.0) between backward and step"
OPTIMIZERS = {
    **{name: f"it is {own}" for name, own in (("sgd", "SGD"), ("adam", "Adam"), ("adamw", "AdamW"), ("lion", "Lion"),
                                              ("rmsprop", "RMSprop"))},
    **dict.fromkeys(("lr_scheduler", "StepLR", "CosineAnnealingLR", "ExponentialLR", "LambdaLR", "OneCycleLR", "warmup",
                     "exponential", "constant", "cosine_decay_schedule"), _RATE),
    **dict.fromkeys(("clip_grad_norm_", "clip_by_global_norm", "clip_grad_norm"), _CLIP),
    **dict.fromkeys(("clip_grad_value_", "clip_value", "clip"), "p.grad = p.grad.clip(-1.0, 1.0) for each parameter"),
    "apply_updates": "optimizer.step(loss) changes the parameters",
    "swa_utils": "in no_grad(), for a, p in zip(averages, parameters): a[...] = 0.99 * a + 0.01 * p"}
_POOLINGS = (("MaxPool1d", "max_pool1d(kernel=2)"), ("MaxPool2d", "max_pool2d(kernel=2)"),
             ("AvgPool1d", "avg_pool1d(kernel=2)"), ("AvgPool2d", "avg_pool2d(kernel=2)"),
             ("AdaptiveAvgPool2d", "mean(axis=(2, 3))"), ("Upsample", "resize_nearest(size=(8, 8))"))
_METHOD = "operators are methods, and Sequential takes functions: lambda x: x.{}"
LAYERS = {
    **{name: _METHOD.format(f"{own}()") for name, own in (
        ("ReLU", "relu"), ("GELU", "gelu"), ("SiLU", "silu"), ("Tanh", "tanh"), ("Sigmoid", "sigmoid"),
        ("LeakyReLU", "leaky_relu"), ("ELU", "elu"), ("Softplus", "softplus"), ("SELU", "selu"), ("Mish", "mish"),
        ("ReLU6", "relu6"), ("Hardswish", "hardswish"), ("Hardtanh", "hardtanh"))},
    **{name: _METHOD.format(own) for name, own in (
        ("Softmax", "softmax(axis=-1)"), ("LogSoftmax", "log_softmax(axis=-1)"))},
    "utils": "daten.optim.clip_norm(parameters, 1.0) clips gradients",
    "init": "layer.weight.assign(array) sets a parameter, and daten.random draws",
    "Dense": "it is Linear(inputs, outputs)", "Conv": "there are Conv1d, Conv2d and Conv3d",
    "Dropout2d": "Dropout is for any number of axes", "Unflatten": "write lambda x: x.reshape(x.shape[0], 8, -1)",
    **dict.fromkeys(("InstanceNorm1d", "InstanceNorm2d"), "GroupNorm with as many groups as channels is the same"),
    "Buffer": "a tensor that requires no gradient is a buffer of the module whose attribute it is",
    **dict.fromkeys(("DataParallel", "DistributedDataParallel"), "there is one device, the CPU, with all its cores"),
    "Flatten": "write lambda x: x.reshape(x.shape[0], -1)", "Identity": "write lambda x: x",
    **{name: _METHOD.format(own) for name, own in _POOLINGS},
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), "BatchNorm is for any number of axes"),
    **dict.fromkeys(("ModuleList", "ModuleDict", "ParameterList"),
                    "lists and dicts of modules and tensors are parts of a module as they are"),
    "Parameter": "parameter(array) or Tensor(…, requires_grad=True) makes one",
    "MultiheadAttention": "it is MultiHeadAttention",
    **dict.fromkeys(("functional", "CrossEntropyLoss", "MSELoss", "L1Loss", "BCELoss", "BCEWithLogitsLoss", "NLLLoss",
                     "HuberLoss", "SmoothL1Loss", "KLDivLoss", "CosineSimilarity", "TripletMarginLoss"),
                    "losses are operators: logits.cross_entropy(labels), x.mse_loss(y)")}


def function(name: str) -> str:
    """What is said of a function that daten does not have: that of NumPy takes tensors, an operator is a method."""
    said = FUNCTIONS.get(name)
    if said is None and callable(of_numpy := getattr(np, name, None)) and not isinstance(of_numpy, type):
        said = f"np.{name} takes tensors"
    if said is None and not name.startswith("_") and operator_library.find(name) is not None:
        said = f"operators are methods: x.{name}()"
    return f": {said}" if said else ""
