"""Layers of neural networks."""
from .layers import (
    BatchNorm,
    Conv1d,
    Conv2d,
    Conv3d,
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
from .recurrent import GRU, LSTM, GRUCell, LSTMCell

__all__ = ["GRU", "LSTM", "BatchNorm", "Conv1d", "Conv2d", "Conv3d", "Dropout", "Embedding", "GRUCell", "GroupNorm",
           "LSTMCell", "LayerNorm", "Linear", "Module", "MultiHeadAttention", "RMSNorm", "Sequential", "parameter"]
