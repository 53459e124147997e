"""Layers. Their parameters have the names and shapes that PyTorch gives them, so that its state dicts fit."""
from __future__ import annotations

from math import prod, sqrt
from typing import Any

import numpy as np

from .. import random
from ..optim import with_next_step
from ..tensor import Tensor, apply, one
from ..tracing import hold
from .module import Module


def parameter(values: np.ndarray) -> Tensor:
    """A tensor that is trained."""
    return Tensor(values, requires_grad=True)


def buffer(values: np.ndarray) -> Tensor:
    """A tensor that belongs to a module, and is not trained."""
    made = Tensor(values)
    hold(made)
    return made


class Linear(Module):
    """x Wᵀ + b, with W[outputs, inputs]; drawn evenly from ±1/√inputs."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        bound = 1 / sqrt(inputs)
        self.weight = parameter(random.current().uniform((outputs, inputs), bound))
        self.bias = parameter(random.current().uniform((outputs,), bound)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """x[…, inputs] to [..., outputs]."""
        made = x @ self.weight.T
        return made if self.bias is None else made + self.bias


class _Convolution(Module):
    axes = 0

    def __init__(self, inputs: int, outputs: int, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] = 1,
                 padding: int | tuple[int, ...] = 0, dilation: int | tuple[int, ...] = 1, groups: int = 1,
                 bias: bool = True) -> None:
        self._kernel, self._stride, self._padding, self._dilation = [
            (v,) * self.axes if isinstance(v, int) else v for v in (kernel, stride, padding, dilation)]
        self._groups = groups
        bound = 1 / sqrt(inputs // groups * prod(self._kernel))
        self.weight = parameter(random.current().uniform((outputs, inputs // groups, *self._kernel), bound))
        self.bias = parameter(random.current().uniform((outputs,), bound)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """x[batch, inputs, …] to [batch, outputs, …]."""
        made = one(f"conv{self.axes}d", x, self.weight, stride=self._stride, padding=self._padding,
                   dilation=self._dilation, groups=self._groups)
        return made if self.bias is None else made + self.bias.reshape(-1, *[1] * self.axes)


class Conv1d(_Convolution):
    """A convolution along one axis, with weight[outputs, inputs / groups, kernel]."""

    axes = 1


class Conv2d(_Convolution):
    """A convolution along two axes, with weight[outputs, inputs / groups, kernel, kernel]."""

    axes = 2


class Conv3d(_Convolution):
    """A convolution along three axes, with weight[outputs, inputs / groups, kernel, kernel, kernel]."""

    axes = 3


class Embedding(Module):
    """Rows of a table weight[count, width], drawn normally."""

    def __init__(self, count: int, width: int) -> None:
        self.weight = parameter(random.current().normal((count, width), 1.0))

    def forward(self, index: Tensor) -> Tensor:
        """The rows at the indices: [...] to [..., width]."""
        return one("take", self.weight, index, axis=0)


class LayerNorm(Module):
    """Rows of mean 0 and variance 1, times weight, plus bias."""

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        self._eps = eps
        self.weight, self.bias = parameter(np.ones(width, np.float32)), parameter(np.zeros(width, np.float32))

    def forward(self, x: Tensor) -> Tensor:
        """Of the same shape, [..., width]."""
        return one("layer_norm", x, self.weight, self.bias, eps=self._eps)


class RMSNorm(Module):
    """Rows over their root mean square, times weight."""

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        self._eps = eps
        self.weight = parameter(np.ones(width, np.float32))

    def forward(self, x: Tensor) -> Tensor:
        """Of the same shape, [..., width]."""
        return one("rms_norm", x, self.weight, eps=self._eps)


class GroupNorm(Module):
    """Groups of channels of mean 0 and variance 1, times weight, plus bias."""

    def __init__(self, groups: int, channels: int, eps: float = 1e-5) -> None:
        self._groups, self._eps = groups, eps
        self.weight, self.bias = parameter(np.ones(channels, np.float32)), parameter(np.zeros(channels, np.float32))

    def forward(self, x: Tensor) -> Tensor:
        """Of the same shape, [batch, channels, …]."""
        return one("group_norm", x, self.weight, self.bias, groups=self._groups, eps=self._eps)


class BatchNorm(Module):
    """Channels of mean 0 and variance 1 over the batch, times weight, plus bias; not in training, over all batches of
    the training, of which the later ones count more (`momentum`)."""

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        self._eps, self._momentum = eps, momentum
        self.weight, self.bias = parameter(np.ones(channels, np.float32)), parameter(np.zeros(channels, np.float32))
        self.running_mean = buffer(np.zeros(channels, np.float32))
        self.running_var = buffer(np.ones(channels, np.float32))

    def forward(self, x: Tensor) -> Tensor:
        """Of the same shape, [batch, channels, …]."""
        if not self.training:
            return one("batch_norm", x, self.weight, self.bias, self.running_mean, self.running_var, eps=self._eps)
        made, mean, variance = apply("batch_norm_training", x, self.weight, self.bias, eps=self._eps)
        assert isinstance(made, Tensor)
        count = x.size // x.shape[1]
        unbiased = variance.detach() * (count / max(1, count - 1))
        for running, value in ((self.running_mean, mean.detach()), (self.running_var, unbiased)):
            with_next_step(running, running * (1 - self._momentum) + value * self._momentum)
        return made


class Dropout(Module):
    """In training, elements become 0 with a probability, and the others larger; else nothing is done."""

    def __init__(self, p: float = 0.5) -> None:
        self._p = p

    def forward(self, x: Tensor) -> Tensor:
        """Of the same shape."""
        if not self.training or not self._p:
            return x
        return one("dropout", random.current().key(), x, p=self._p)


class MultiHeadAttention(Module):
    """Attention of a sequence to itself: queries, keys and values of several heads, joined by a linear layer."""

    def __init__(self, width: int, heads: int, causal: bool = False, bias: bool = True) -> None:
        if width % heads:
            raise ValueError(f"a width of {width} cannot be divided among {heads} heads")
        self._heads, self._causal = heads, causal
        self.qkv, self.projection = Linear(width, 3 * width, bias), Linear(width, width, bias)

    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        """x[batch, time, width], of the same shape. `mask`: bool, [..., time, time], true where a key is seen."""
        batch, time, width = x.shape
        parts = self.qkv(x).reshape(batch, time, 3, self._heads, width // self._heads).transpose(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        seen = (apply("attention", q, k, v, causal=self._causal) if mask is None
                else apply("attention_mask", q, k, v, mask))
        made = self.projection(seen.transpose(0, 2, 1, 3).reshape(batch, time, width))
        assert isinstance(made, Tensor)
        return made
