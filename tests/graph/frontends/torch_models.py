"""Small models of PyTorch, one for each kind that the frontend must read."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """A residual block."""

    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, groups=2)

    def forward(self, x):
        return F.relu(x + self.second(F.relu(self.norm(self.first(x)))))


class Residual(nn.Module):
    """A small network of residual blocks."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 7, 2, 3)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = self.blocks(self.pool(torch.relu(self.stem(x))))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Encoder(nn.Module):
    """Tokens, positions and two encoder layers."""

    def __init__(self, norm_first):
        super().__init__()
        self.table = nn.Embedding(50, 32)
        self.positions = nn.Parameter(torch.randn(9, 32))
        layer = nn.TransformerEncoderLayer(
            32, 4, 48, batch_first=True, activation="gelu", norm_first=norm_first
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 50)

    def forward(self, tokens):
        return self.head(self.layers(self.table(tokens) + self.positions))


class Recurrent(nn.Module):
    """A recurrent layer, whose states are results, too."""

    def __init__(self, kind, **options):
        super().__init__()
        self.layer = kind(5, 7, 2, **options)

    def forward(self, x):
        return self.layer(x)


class Generator(nn.Module):
    """Transposed convolutions."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.ConvTranspose2d(6, 8, 4, 1, 0, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
            nn.ConvTranspose2d(8, 3, 4, 2, 1, 1), nn.Tanh(),
        )  # fmt: skip

    def forward(self, x):
        return self.layers(x)


class Images(nn.Module):
    """Norms, other sizes and rearranged pixels, in a result with names."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding="same", dilation=2)
        self.group = nn.GroupNorm(4, 8)
        self.instance = nn.InstanceNorm2d(8, affine=True)

    def forward(self, x):
        y = F.silu(self.group(self.conv(x)))
        smaller = F.avg_pool2d(self.instance(y), 3, 2, 1, ceil_mode=True)
        z = F.interpolate(smaller, size=y.shape[2:], mode="bicubic", align_corners=False)
        padded = F.pad(y, (1, 2, 0, 1), mode="reflect")
        return {"joined": torch.cat([y, z], 1), "pixels": F.pixel_shuffle(padded, 2).softmax(1)}


class Indexed(nn.Module):
    """Indices, masks and writes to parts of tensors of several dtypes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("places", torch.tensor([2, 0, -1]), persistent=False)

    def forward(self, x, tokens):
        y = x.clone()
        y[:, 1] = 0.5
        y[:, ::2] += 1
        y = y.masked_fill(y > 1.5, -1.0)
        rows = x[:, self.places, 1:]
        best, where = x.topk(2, dim=-1)
        onehot = F.one_hot(tokens, 6)
        return y, rows, best, where, onehot, tokens // 2, (tokens * 2.5).round(), x.var(dim=1)


def models():
    """Return models in inference mode and arguments, by name; the same ones each time."""
    torch.manual_seed(0)
    found = {
        "residual": (Residual(), [torch.randn(2, 3, 33, 30)]),
        "encoder": (Encoder(False), [torch.randint(0, 50, (2, 9))]),
        "encoder-norm-first": (Encoder(True), [torch.randint(0, 50, (1, 9))]),
        "lstm": (Recurrent(nn.LSTM), [torch.randn(4, 3, 5)]),
        "lstm-both-ways": (
            Recurrent(nn.LSTM, bidirectional=True, batch_first=True), [torch.randn(3, 4, 5)]
        ),
        "gru": (Recurrent(nn.GRU, bias=False), [torch.randn(4, 3, 5)]),
        "rnn": (Recurrent(nn.RNN, nonlinearity="relu"), [torch.randn(4, 3, 5)]),
        "generator": (Generator(), [torch.randn(2, 6, 1, 3)]),
        "images": (Images(), [torch.randn(1, 3, 9, 13)]),
        "indexed": (Indexed(), [torch.randn(3, 4, 5), torch.randint(0, 6, (2, 3))]),
        "bfloat16": (
            nn.Sequential(nn.Linear(6, 4), nn.ReLU()).bfloat16(),
            [torch.randn(2, 6, dtype=torch.bfloat16)],
        ),
    }  # fmt: skip
    for model, _ in found.values():
        model.eval()
        for statistic in model.buffers():
            if statistic.is_floating_point():
                statistic.add_(torch.rand_like(statistic) / 2)
    return found


def leaves(value):
    """Return the tensors of a result, in their order."""
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value
    return [each for part in parts for each in leaves(part)]
