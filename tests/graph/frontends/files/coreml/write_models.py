"""Write the CoreML models beside this file, and what PyTorch computes for them.

Run it with coremltools 9, PyTorch and scikit-learn: ``python write_models.py``.
"""

import shutil
from pathlib import Path

import coremltools as ct
import numpy as np
import torch
from coremltools.models.neural_network.quantization_utils import quantize_weights
from torch import nn
from torch.nn import functional as F

HERE = Path(__file__).parent


class Mobile(nn.Module):
    """Convolutions with batch normalisation, as in MobileNet."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.Hardswish())
        self.wide = nn.Sequential(nn.Conv2d(8, 16, 1), nn.BatchNorm2d(16), nn.ReLU6())
        self.deep = nn.Sequential(
            nn.Conv2d(16, 16, 3, padding=2, dilation=2, groups=16), nn.BatchNorm2d(16), nn.SiLU()
        )
        self.back = nn.Sequential(nn.Conv2d(16, 8, 1, bias=False), nn.BatchNorm2d(8))
        self.last = nn.Linear(8, 5)

    def forward(self, x):
        x = self.first(x)
        x = x + self.back(self.deep(self.wide(x)))
        return F.softmax(self.last(F.adaptive_avg_pool2d(x, 1).flatten(1)), -1)


class Encoder(nn.Module):
    """A layer of a transformer on embedded tokens."""

    def __init__(self, size=16, heads=2):
        super().__init__()
        self.heads, self.size = heads, size
        self.table = nn.Embedding(11, size)
        self.places = nn.Parameter(torch.randn(1, 6, size))
        self.joint, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.norms = nn.ModuleList([nn.LayerNorm(size) for _ in range(2)])
        self.wide, self.narrow = nn.Linear(size, 24), nn.Linear(24, size)

    def forward(self, tokens):
        x = self.table(tokens) + self.places
        q, k, v = (
            part.view(1, 6, self.heads, -1).transpose(1, 2) for part in self.joint(x).chunk(3, -1)
        )
        weights = torch.softmax(q @ k.transpose(-2, -1) / 8**0.5, -1)
        mixed = (weights @ v).transpose(1, 2).reshape(1, 6, self.size)
        x = self.norms[0](x + self.out(mixed))
        x = self.norms[1](x + self.narrow(F.gelu(self.wide(x))))
        return x[:, 0], torch.tanh(x.mean(1))


class Images(nn.Module):
    """Pools, resizes, borders, a transposed convolution and other activations."""

    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(4, 4, 3, 2, 1, output_padding=1, groups=2)
        self.alpha = nn.PReLU(4)
        self.norm = nn.InstanceNorm2d(4, affine=True)

    def forward(self, x):
        a = F.max_pool2d(x, 3, 2, ceil_mode=True)
        b = F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)
        a, b = F.leaky_relu(a, 0.2), F.elu(b, 0.7)
        c = torch.cat([F.pad(a, (1, 2, 1, 0), mode="reflect"), F.pad(b, (1, 2, 1, 0))], 1)
        c = F.pixel_shuffle(c, 2)[:, :, 1:13, ::2]
        d = F.interpolate(c, size=(7, 9), mode="bilinear", align_corners=True)
        e = F.interpolate(d, scale_factor=2.0, mode="nearest")
        f = self.norm(self.alpha(self.up(torch.cat([d, d.flip(2)], 1))))
        g = F.interpolate(f, scale_factor=0.5, mode="bilinear", align_corners=False)
        return torch.cat([e, f.clamp(-1, 0.8)], 1), F.softplus(g).amax(3) - g.pow(2).sum(3).sqrt()


class Recurrent(nn.Module):
    """An LSTM in both directions, and the last step of another one."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 6, bidirectional=True)
        self.last = nn.LSTM(12, 4)

    def forward(self, x):
        rows, _ = self.lstm(x)
        return rows, self.last(rows)[1][0]


MODELS = {
    "mobile": (Mobile, torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(1)), 1),
    "encoder": (Encoder, torch.tensor([[3, 1, 4, 1, 5, 9]], dtype=torch.int32), 2),
    "images": (
        Images, torch.randn(1, 4, 12, 12, generator=torch.Generator().manual_seed(2)), 2
    ),
    "recurrent": (
        Recurrent, torch.randn(3, 2, 5, generator=torch.Generator().manual_seed(3)), 2
    ),
}  # fmt: skip


def write(name, kind, x, count):
    """Write a model in both kinds, each with weights of 32 and of 16 bits."""
    torch.manual_seed(0)
    model = kind().eval()
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.uniform_(layer.running_mean, -0.2, 0.2)
            nn.init.uniform_(layer.running_var, 0.5, 1.5)
    with torch.no_grad():
        found = model(x)
        traced = torch.jit.trace(model, x)
    outputs = found if isinstance(found, tuple) else (found,)
    arrays = {f"y{n}": output.numpy() for n, output in enumerate(outputs)}
    np.savez_compressed(HERE / f"{name}.npz", x=x.numpy(), **arrays)
    dtype = np.int32 if x.dtype == torch.int32 else np.float32

    def converted(**options):
        return ct.convert(
            traced, inputs=[ct.TensorType("x", shape=tuple(x.shape), dtype=dtype)],
            outputs=[ct.TensorType(f"y{n}") for n in range(count)], **options,
        )  # fmt: skip

    for bits in (32, 16):
        precision = ct.precision.FLOAT32 if bits == 32 else ct.precision.FLOAT16
        made = converted(
            convert_to="mlprogram", compute_precision=precision,
            minimum_deployment_target=ct.target.iOS16 if bits == 32 else ct.target.iOS18,
        )  # fmt: skip
        package = HERE / f"{name}_{bits}.mlpackage"
        shutil.rmtree(package, ignore_errors=True)
        made.save(str(package))
    network = converted(convert_to="neuralnetwork")
    network.save(str(HERE / f"{name}_32.mlmodel"))
    spec = quantize_weights(network, 16)
    spec = spec if hasattr(spec, "SerializeToString") else spec.get_spec()
    (HERE / f"{name}_16.mlmodel").write_bytes(spec.SerializeToString())


if __name__ == "__main__":
    for each, given in MODELS.items():
        write(each, *given)
