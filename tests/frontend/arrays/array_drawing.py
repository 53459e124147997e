"""Random expressions over whole arrays, of any shape that numpy accepts."""
from __future__ import annotations

import random

# The rank of each array of the signature of test_array_values, all float32.
ARRAYS = {"X": 2, "Y": 2, "P": 3}
UNARY = ["-{}", "np.tanh({})", "np.abs({})", "{} * 0.5", "1 + {}", "np.maximum({}, 0)", "np.where({} > 0.25, 1.0, 0.5)", "np.clip({}, -1, 1)",
         "{}.astype(np.float64).astype(np.float32)", "np.floor({})", "{} / 2", "({} < 0.5).astype(np.float32)"]
BINARY = ["{} + {}", "{} - {}", "{} * {}", "np.maximum({}, {})", "np.where({} > {}, 1.0, 2.0)", "np.minimum({}, {})"]
# Indices, and how many axes more they leave; arrays have at least one element along each axis.
INDICES = [("::-1", 0), ("..., ::-1", 0), ("..., None", 1), ("None", 1), ("0", -1), ("-1", -1), ("..., 0", -1), ("::2", 0), ("..., :1", 0)]


def drawn_expression(seed: int) -> str:
    """A random expression."""
    rng = random.Random(seed)
    return _drawn(rng, rng.randrange(1, 5))[0]


def _drawn(rng: random.Random, depth: int) -> tuple[str, int]:
    """A text and the rank of its value."""
    if depth == 0:
        name = rng.choice(list(ARRAYS))
        return name, ARRAYS[name]
    text, rank = _drawn(rng, depth - 1)
    match rng.randrange(8):
        case 0:
            return f"({rng.choice(UNARY).format(text)})", rank
        case 1:
            other = rng.choice([text, f"np.sin({text})", "a", "0.75", f"{text}[::-1]" if rank else "a"])
            return f"({rng.choice(BINARY).format(text, other)})", rank
        case 2 if rank:
            axis, keep = rng.randrange(-rank, rank), rng.random() < 0.5
            fn = rng.choice(["sum", "max", "mean", "min"])
            return f"{text}.{fn}(axis={axis}, keepdims={keep})", rank if keep else rank - 1
        case 3 if rank:
            order = rng.sample(range(rank), rank)
            return f"{text}.transpose({', '.join(map(str, order))})", rank
        case 4 if rank:
            index, change = rng.choice(INDICES)
            return f"{text}[{index}]", rank + change
        case 5:
            return f"{text}.reshape(-1)", 1
        case 6 if rank:
            return f"np.concatenate(({text}, {text} + 1), axis={rng.randrange(rank)})", rank
        case 7 if rank:
            return f"np.roll({text}, 1, axis={rng.randrange(-rank, rank)})", rank
    return f"np.stack(({text}, {text} * 2), axis={rng.randrange(rank + 1)})", rank + 1
