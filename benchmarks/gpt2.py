"""The layers of GPT-2 as a spec of composites that call composites: what compiling large programs is measured with.

After A. Radford et al., "Language Models are Unsupervised Multitask Learners" (2019): layers that normalise first, the
approximation of gelu by tanh.
"""
from __future__ import annotations

PARTS = '''[[composite]]
name = "LayerNorm"
inputs = ["X{{float}}[T E]", "g{{float}}[E]", "b{{float}}[E]"]
outputs = ["Y{{float}}[T E]"]
implementation = {{ lang = "python", code = """
c = X - X.mean(-1, keepdims=True)
return c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * g + b
""" }}
[[composite]]
name = "Linear"
inputs = ["X{{float}}[T I]", "W{{float}}[I O]", "b{{float}}[O]"]
outputs = ["Y{{float}}[T O]"]
implementation = {{ lang = "python", code = "return X @ W + b" }}
[[composite]]
name = "Attention"
inputs = ["Q{{float}}[T {e}]", "K{{float}}[T {e}]", "V{{float}}[T {e}]"]
outputs = ["Y{{float}}[T {e}]"]
implementation = {{ lang = "python", code = """
q, k, v = [x.reshape(T, {heads}, {width}).transpose(1, 0, 2) for x in (Q, K, V)]
S = np.where(np.arange(T)[None, :] <= np.arange(T)[:, None], q @ k.transpose(0, 2, 1) * {scale}, -np.inf)
E = np.exp(S - S.max(axis=-1, keepdims=True))
return (E / E.sum(axis=-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(T, {e})
""" }}
[[composite]]
name = "Gelu"
inputs = ["X{{float}}[T I]"]
outputs = ["Y{{float}}[T I]"]
implementation = {{ lang = "python", code = """
return 0.5 * X * (1 + np.tanh(0.7978845608028654 * (X + 0.044715 * X * X * X)))
""" }}
[[composite]]
name = "Block"
inputs = ["X{{float}}[T {e}]", {parameters}]
outputs = ["Y{{float}}[T {e}]"]
implementation = {{ lang = "python", code = """
N = LayerNorm(X, g1, b1)
R = X + Linear(Attention(Linear(N, Wq, bq), Linear(N, Wk, bk), Linear(N, Wv, bv)), Wo, bo)
return R + Linear(Gelu(Linear(LayerNorm(R, g2, b2), W1, c1)), W2, c2)
""" }}
[[composite]]
name = "Layers"
inputs = ["X{{float}}[T {e}]", {all_parameters}]
outputs = ["Y{{float}}[T {e}]"]
implementation = {{ lang = "python", code = """
{calls}
return X
""" }}
'''


def shapes(heads: int = 12, width: int = 64) -> dict[str, tuple[int, ...]]:
    """The parameters of a layer, in their order, with `heads` heads of `width` components."""
    e = heads * width
    made: dict[str, tuple[int, ...]] = {"g1": (e,), "b1": (e,)}
    for name in ("q", "k", "v", "o"):
        made |= {f"W{name}": (e, e), f"b{name}": (e,)}
    return made | {"g2": (e,), "b2": (e,), "W1": (e, 4 * e), "c1": (4 * e,), "W2": (4 * e, e), "c2": (e,)}


def spec(layers: int, heads: int = 12, width: int = 64) -> str:
    """The text of the spec; its composite `Layers` calls `Block` once for each layer, on any number T of tokens."""
    def declared(suffix: str) -> str:
        return ", ".join([f'"{name}{suffix}{{float}}[{" ".join(map(str, shape))}]"'
                          for name, shape in shapes(heads, width).items()])
    calls = [f"X = Block(X, {', '.join([f'{name}_{n}' for name in shapes()])})" for n in range(layers)]
    return PARTS.format(e=heads * width, heads=heads, width=width, scale=width ** -0.5, parameters=declared(""),
                        all_parameters=", ".join([declared(f"_{n}") for n in range(layers)]), calls="\n".join(calls))
