"""What users of other libraries write, and what daten has for it: said where a name is not known."""
from __future__ import annotations

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
    **dict.fromkeys(("contiguous", "cpu"), "leave it out: tensors are contiguous arrays on the CPU"),
    **dict.fromkeys(("to", "type", "type_as"), _CONVERSION.format("float32")),
    **{name: _CONVERSION.format(own) for name, own in (
        ("float", "float32"), ("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16"), ("int", "int32"),
        ("long", "int64"), ("bool", "bool"))},
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
    **{name: f"np.{name} takes tensors" for name in (
        "concatenate", "stack", "where", "exp", "log", "sqrt", "maximum", "minimum", "einsum", "matmul", "sum")},
    **dict.fromkeys(("hessian", "jacobian", "jacfwd", "jacrev"),
                    "gradients are tensors: np.stack([gradients(g, [x])[0] for g in gradients(y, [x])[0]])"),
    "vmap": "operators take arrays with axes before those of the formula",
    **dict.fromkeys(("save", "load"), "daten.weights.save and load keep the values of state_dict()"),
    **dict.fromkeys(("relu", "softmax", "functional"), "operators are methods: x.relu(), x.softmax(axis=-1)")}
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
_METHOD = "operators are methods, and Sequential takes functions: lambda x: x.{}"
LAYERS = {
    **{name: _METHOD.format(f"{own}()") for name, own in (
        ("ReLU", "relu"), ("GELU", "gelu"), ("SiLU", "silu"), ("Tanh", "tanh"), ("Sigmoid", "sigmoid"),
        ("Softmax", "softmax"), ("LeakyReLU", "leaky_relu"), ("ELU", "elu"), ("Softplus", "softplus"))},
    "Flatten": "write lambda x: x.reshape(x.shape[0], -1)", "Identity": "write lambda x: x",
    **dict.fromkeys(("MaxPool1d", "MaxPool2d", "AvgPool1d", "AvgPool2d", "AdaptiveAvgPool2d", "Upsample"),
                    _METHOD.format("max_pool2d(kernel=2)")),
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), "BatchNorm is for any number of axes"),
    **dict.fromkeys(("ModuleList", "ModuleDict", "ParameterList"),
                    "lists and dicts of modules and tensors are parts of a module as they are"),
    "Parameter": "parameter(array) or Tensor(…, requires_grad=True) makes one",
    "MultiheadAttention": "it is MultiHeadAttention",
    **dict.fromkeys(("functional", "CrossEntropyLoss", "MSELoss", "L1Loss", "BCELoss", "BCEWithLogitsLoss", "NLLLoss"),
                    "losses are operators: logits.cross_entropy(labels), x.mse_loss(y)")}
