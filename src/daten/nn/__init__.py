"""Layers of neural networks."""
from typing import Any as _Any

from .layers import (
    BatchNorm,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Dropout,
    Embedding,
    GroupNorm,
    LayerNorm,
    Linear,
    MultiHeadAttention,
    RMSNorm,
    parameter,
)
from .module import Module, Sequential
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "BatchNorm",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Dropout",
    "Embedding",
    "GRUCell",
    "GroupNorm",
    "LSTMCell",
    "LayerNorm",
    "Linear",
    "Module",
    "MultiHeadAttention",
    "RMSNorm",
    "RNNCell",
    "Sequential",
    "parameter",
]

TYPE_CHECKING = False
if not TYPE_CHECKING:                  # with it, a type checker would take any name for a layer
    def __getattr__(name: str) -> _Any:
        """What there is instead of layers of other libraries."""
        from ..other_names import LAYERS
        said = f": {LAYERS[name]}" if name in LAYERS else ""
        raise AttributeError(f"module 'daten.nn' has no attribute {name!r}{said}")
