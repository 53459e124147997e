"""Layers of neural networks.

Linear, Embedding, the convolutions, the norms and the recurrent cells have PyTorch's parameter names and shapes. Other
names differ: MultiHeadAttention has `qkv` and `projection`, RNN, LSTM and GRU have `cell.weight_ih` instead
of `weight_ih_l0`, and Sequential has `layers.0.weight` instead of `0.weight`.
"""
from __future__ import annotations

from math import prod, sqrt
from typing import Any

import numpy as np

from .. import random
from ..optim import with_next_step
from ..tensor import Tensor, apply, one
from ..tracing import hold
from .module import Module


def check_counts(**counts: Any) -> None:
    """ValueError for a number of channels, elements or others that is no whole number from 1 on."""
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} is a whole number from 1 on, not {value!r}")


def parameter(values: np.ndarray) -> Tensor:
    """A tensor with these values that requires gradients: an optimizer trains it."""
    return Tensor(values, requires_grad=True)


def buffer(values: np.ndarray) -> Tensor:
    """A tensor with these values that belongs to a module and is not trained, such as a running average."""
    made = Tensor(values)
    hold(made)
    return made


class Linear(Module):
    """x Wᵀ + b, with weight[outputs, inputs] and bias[outputs]. Both start uniformly distributed in ±1/√inputs."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        check_counts(inputs=inputs, outputs=outputs)
        bound = 1 / sqrt(inputs)
        self.weight = parameter(random.current().uniform((outputs, inputs), bound))
        self.bias = parameter(random.current().uniform((outputs,), bound)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """x[..., inputs] to [..., outputs]."""
        made = x @ self.weight.T
        return made if self.bias is None else made + self.bias


class _Windows(Module):
    """What convolutions of all kinds have: windows along some axes, a weight and perhaps a bias for each output."""

    axes = 0
    bias: Tensor | None

    def each(self, *settings: int | tuple[int, ...]) -> list[tuple[int, ...]]:
        """Settings with a number for each axis; one number is that of all."""
        return [(v,) * self.axes if isinstance(v, int) else v for v in settings]

    def begin(self, shape: tuple[int, ...], outputs: int, inputs: int, bias: bool) -> None:
        """Draw weight[shape] and bias[outputs] uniformly in ±1/√k, where k is `inputs` times the size of a window."""
        window = shape[2:]
        for size in window:
            check_counts(kernel=size)
        bound = 1 / sqrt(inputs * prod(window))
        self.weight = parameter(random.current().uniform(shape, bound))
        self.bias = parameter(random.current().uniform((outputs,), bound)) if bias else None

    def with_bias(self, made: Tensor) -> Tensor:
        """The sum with the bias of each output."""
        return made if self.bias is None else made + self.bias.reshape(-1, *[1] * self.axes)


class _Convolution(_Windows):
    def __init__(self, inputs: int, outputs: int, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] = 1,
                 padding: int | tuple[int, ...] = 0, dilation: int | tuple[int, ...] = 1, groups: int = 1,
                 bias: bool = True) -> None:
        self._kernel, self._stride, self._padding, self._dilation = self.each(kernel, stride, padding, dilation)
        check_counts(inputs=inputs, outputs=outputs, groups=groups)
        if inputs % groups or outputs % groups:
            raise ValueError(f"{inputs} inputs and {outputs} outputs cannot be divided among {groups} groups")
        self._groups = groups
        self.begin((outputs, inputs // groups, *self._kernel), outputs, inputs // groups, bias)

    def forward(self, x: Tensor) -> Tensor:
        """x[batch, inputs, …] to [batch, outputs, …]; the extents of the output are given for `Conv1d`."""
        made = one(f"conv{self.axes}d", x, self.weight, stride=self._stride, padding=self._padding,
                   dilation=self._dilation, groups=self._groups)
        return self.with_bias(made)


class Conv1d(_Convolution):
    """A 1-D convolution of x[batch, inputs, length], with weight[outputs, inputs / groups, kernel] and bias[outputs].

    It is a cross-correlation: the kernel is not flipped. `stride`: the step of the kernel; `padding`: the zeros that
    are added on each side; `dilation`: the distance between neighbouring elements of the kernel; `groups`: the number
    of groups into which the channels are divided, each with a convolution of its own. From n elements along an axis the
    output has

        ⌊(n + 2·padding - dilation·(kernel - 1) - 1) / stride⌋ + 1.

    Weight and bias start uniformly distributed in ±1/√k, where k is the number of weights of one output."""

    axes = 1


class Conv2d(_Convolution):
    """A 2-D convolution of x[batch, inputs, height, width], with weight[outputs, inputs / groups, kernel, kernel] and
    bias[outputs]. `kernel`, `stride`, `padding` and `dilation`: one number, or a tuple with one for each axis;
    otherwise as `Conv1d`."""

    axes = 2


class Conv3d(_Convolution):
    """A 3-D convolution of x[batch, inputs, depth, height, width], with weight[outputs, inputs / groups, kernel,
    kernel, kernel] and bias[outputs]. `kernel`, `stride`, `padding` and `dilation`: one number, or a tuple with one for
    each axis; otherwise as `Conv1d`."""

    axes = 3


class _TransposedConvolution(_Windows):
    def __init__(self, inputs: int, outputs: int, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] = 1,
                 padding: int | tuple[int, ...] = 0, output_padding: int | tuple[int, ...] = 0,
                 dilation: int | tuple[int, ...] = 1, bias: bool = True) -> None:
        self._kernel, self._stride, self._padding, self._output_padding, self._dilation = self.each(
            kernel, stride, padding, output_padding, dilation)
        check_counts(inputs=inputs, outputs=outputs)
        self.begin((inputs, outputs, *self._kernel), outputs, outputs, bias)

    def forward(self, x: Tensor) -> Tensor:
        """x[batch, inputs, …] to [batch, outputs, …]; the extents of the output are given for `ConvTranspose1d`."""
        made = one(f"conv_transpose{self.axes}d", x, self.weight, stride=self._stride, padding=self._padding,
                   dilation=self._dilation, output_padding=self._output_padding)
        return self.with_bias(made)


class ConvTranspose1d(_TransposedConvolution):
    """A 1-D transposed convolution of x[batch, inputs, length], with weight[inputs, outputs, kernel] and bias[outputs]:
    the gradient of `Conv1d` with respect to its input, as a layer. `stride`, `padding` and `dilation`: those of the
    convolution; `output_padding`: elements more at the end of each axis. From n elements along an axis the output has

        (n - 1)·stride - 2·padding + dilation·(kernel - 1) + output_padding + 1.

    Weight and bias start uniformly distributed in ±1/√k with k = outputs · kernel, as in PyTorch."""

    axes = 1


class ConvTranspose2d(_TransposedConvolution):
    """A 2-D transposed convolution of x[batch, inputs, height, width], with weight[inputs, outputs, kernel, kernel] and
    bias[outputs]. One number, or a tuple with one for each axis; otherwise as `ConvTranspose1d`."""

    axes = 2


class ConvTranspose3d(_TransposedConvolution):
    """A 3-D transposed convolution of x[batch, inputs, depth, height, width], with weight[inputs, outputs, kernel,
    kernel, kernel] and bias[outputs]. One number, or a tuple with one for each axis; otherwise as
    `ConvTranspose1d`."""

    axes = 3


class Embedding(Module):
    """A table of `count` vectors, weight[count, width], which starts with standard normal values."""

    def __init__(self, count: int, width: int) -> None:
        check_counts(count=count, width=width)
        self.weight = parameter(random.current().normal((count, width), 1.0))

    def forward(self, index: Tensor) -> Tensor:
        """The rows of the table at the indices, which are integers: [...] to [..., width]."""
        return one("take", self.weight, index, axis=0)


class LayerNorm(Module):
    """Layer normalization (Ba, Kiros and Hinton, 2016): (x - mean) / sqrt(variance + eps) · weight + bias, with the
    mean and variance over the last axis, of length `width`."""

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        self._eps = eps
        self.weight, self.bias = parameter(np.ones(width, np.float32)), parameter(np.zeros(width, np.float32))

    def forward(self, x: Tensor) -> Tensor:
        """x[..., width] to the same shape."""
        return one("layer_norm", x, self.weight, self.bias, eps=self._eps)


class RMSNorm(Module):
    """RMS normalization (Zhang and Sennrich, 2019): x / sqrt(mean(x²) + eps) · weight, with the mean over the last
    axis, of length `width`."""

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        self._eps = eps
        self.weight = parameter(np.ones(width, np.float32))

    def forward(self, x: Tensor) -> Tensor:
        """x[..., width] to the same shape."""
        return one("rms_norm", x, self.weight, eps=self._eps)


class GroupNorm(Module):
    """Group normalization (Wu and He, 2018): the channels are divided into `groups` groups, and each group of a sample
    is normalized by its own mean and variance; then each channel is multiplied by weight[channels], and bias[channels]
    is added."""

    def __init__(self, groups: int, channels: int, eps: float = 1e-5) -> None:
        check_counts(groups=groups, channels=channels)
        if channels % groups:
            raise ValueError(f"{channels} channels cannot be divided among {groups} groups")
        self._groups, self._eps = groups, eps
        self.weight, self.bias = parameter(np.ones(channels, np.float32)), parameter(np.zeros(channels, np.float32))

    def forward(self, x: Tensor) -> Tensor:
        """x[batch, channels, …] to the same shape."""
        return one("group_norm", x, self.weight, self.bias, groups=self._groups, eps=self._eps)


class BatchNorm(Module):
    """Batch normalization (Ioffe and Szegedy, 2015). In training, each channel is normalized by the mean and variance
    of the batch; after `eval()`, by the running averages of these. Then each channel is multiplied by weight[channels],
    and bias[channels] is added. `momentum`: the weight of the newest batch in the running averages."""

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        self._eps, self._momentum = eps, momentum
        self.weight, self.bias = parameter(np.ones(channels, np.float32)), parameter(np.zeros(channels, np.float32))
        self.running_mean = buffer(np.zeros(channels, np.float32))
        self.running_var = buffer(np.ones(channels, np.float32))

    def forward(self, x: Tensor) -> Tensor:
        """x[batch, channels, …] to the same shape."""
        if not self.training:
            return one("batch_norm", x, self.weight, self.bias, self.running_mean, self.running_var, eps=self._eps)
        made, mean, variance = apply("batch_norm_training", x, self.weight, self.bias, eps=self._eps)
        assert isinstance(made, Tensor)
        count = x.size // x.shape[1]
        unbiased = variance.detach() * (count / np.maximum(count - 1, 1))
        for running, value in ((self.running_mean, mean.detach()), (self.running_var, unbiased)):
            with_next_step(running, running * (1 - self._momentum) + value * self._momentum)
        return made


class Dropout(Module):
    """In training, each element is set to 0 with probability `p`, and the others are divided by 1 - p (Srivastava et
    al., 2014). After `eval()`, the identity."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"p is a probability, from 0 to 1, not {p!r}")
        self._p = p

    def forward(self, x: Tensor) -> Tensor:
        """x of any shape to the same shape."""
        if not self.training or not self._p:
            return x
        return one("dropout", random.current().key(), x, p=self._p)


class MultiHeadAttention(Module):
    """Multi-head self-attention (Vaswani et al., Attention is all you need, 2017). One linear layer (`qkv`) computes
    queries, keys and values of `heads` heads, each of width `width` / `heads`; another one (`projection`) combines the
    results. `causal`: a position attends only to itself and to earlier ones. ValueError if `heads` does not divide
    `width`."""

    def __init__(self, width: int, heads: int, causal: bool = False, bias: bool = True) -> None:
        check_counts(width=width, heads=heads)
        if width % heads:
            raise ValueError(f"a width of {width} cannot be divided among {heads} heads")
        self._heads, self._causal = heads, causal
        self.qkv, self.projection = Linear(width, 3 * width, bias), Linear(width, width, bias)

    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        """x[batch, time, width] to the same shape. `mask`: bool[..., time, time], true where a query (row) may attend
        to a key (column). With a mask, `causal` is ignored: put the causal condition into the mask. A query without any
        key gives NaN."""
        batch, time, width = x.shape
        parts = self.qkv(x).reshape(batch, time, 3, self._heads, width // self._heads).transpose(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        seen = (apply("attention", q, k, v, causal=self._causal) if mask is None
                else apply("attention_mask", q, k, v, mask))
        made = self.projection(seen.transpose(0, 2, 1, 3).reshape(batch, time, width))
        assert isinstance(made, Tensor)
        return made
