"""Write the models in `files/mxnet`, with what MXNet computes of them.

MXNet 1.9.1 needs NumPy before 1.24, so that it has an environment of its own:

    python3 -m venv MX && MX/bin/pip install mxnet==1.9.1 'numpy<1.24'
    MX/bin/python tests/graph/frontends/mxnet_models.py
    MXNET_MKLDNN_ENABLED=0 MX/bin/python tests/graph/frontends/mxnet_models.py deconvolutions

Each model is three files: the symbol, the weights, and ``NAME.npz`` with the inputs by their names
and the outputs as ``output_0``, … The same versions write the same files.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

np.bool = bool  # type: ignore[attr-defined]  # MXNet reads the name that NumPy no longer has
import mxnet as mx  # noqa: E402  after the line above
from mxnet.gluon import nn, rnn  # noqa: E402

FOLDER = Path(__file__).parent / "files" / "mxnet"
S = mx.sym


def random_of(numbers: Any, name: str, shape: tuple[int, ...]) -> Any:
    """Return weights for a name; a variance is positive."""
    if name.endswith(("var", "gamma", "positive")):
        return numbers.uniform(0.5, 1.5, shape).astype("float32")
    return (numbers.normal(size=shape) * 0.4).astype("float32")


# -- models of gluon -------------------------------------------------------------------------------


class Residual(nn.HybridBlock):
    """Two convolutions and what goes past them."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        self.body = nn.HybridSequential(prefix="")
        self.body.add(
            nn.Conv2D(channels, 3, stride, 1, use_bias=False), nn.BatchNorm(),
            nn.Activation("relu"), nn.Conv2D(channels, 3, 1, 1, use_bias=False),
            nn.BatchNorm(scale=False),
        )  # fmt: skip
        self.past = nn.Conv2D(channels, 1, stride, use_bias=False)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the sum of both ways."""
        return F.Activation(self.body(x) + self.past(x), act_type="relu")


def resnet() -> Any:
    """Return a small ResNet."""
    net = nn.HybridSequential(prefix="resnet_")
    with net.name_scope():
        net.add(nn.Conv2D(8, 3, 1, 1), nn.BatchNorm(), nn.Activation("relu"),
                nn.MaxPool2D(3, 2, 1), Residual(8, 1), Residual(12, 2), nn.GlobalAvgPool2D(),
                nn.Flatten(), nn.Dense(5))  # fmt: skip
    return net


def mobilenet() -> Any:
    """Return a small MobileNet: depthwise convolutions, and activations that are cut at 6."""
    net = nn.HybridSequential(prefix="mobilenet_")
    with net.name_scope():
        net.add(nn.Conv2D(8, 3, 2, 1, use_bias=False), nn.BatchNorm(epsilon=1e-3))
        for channels, stride in ((8, 1), (16, 2)):
            net.add(
                nn.Conv2D(8, 3, stride, 1, groups=8, use_bias=False), nn.BatchNorm(),
                nn.HybridLambda(lambda F, x: F.clip(x, 0, 6)),
                nn.Conv2D(channels, 1, use_bias=False), nn.BatchNorm(), nn.LeakyReLU(0.1),
            )  # fmt: skip
        net.add(nn.AvgPool2D(2, 2, count_include_pad=False), nn.Flatten(),
                nn.Dense(6, activation="tanh"))  # fmt: skip
    return net


class Texts(nn.HybridBlock):
    """A classifier of texts with layers of two kinds."""

    def __init__(self) -> None:
        super().__init__(prefix="texts_")
        with self.name_scope():
            self.embedding = nn.Embedding(20, 6)
            self.first = rnn.LSTM(5, num_layers=2, bidirectional=True, input_size=6)
            self.second = rnn.GRU(4, input_size=10)
            self.third = rnn.RNN(4, input_size=4)
            self.norm = nn.LayerNorm(in_channels=4)
            self.dense = nn.Dense(3)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return scores of texts, whose words are numbers in the order of steps, batch."""
        rows = self.third(self.second(self.first(self.embedding(x))))
        return F.log_softmax(self.dense(self.norm(F.mean(rows, axis=0))))


def write_gluon(name: str, net: Any, **inputs: Any) -> None:
    """Write a model of gluon."""
    numbers = np.random.default_rng(0)
    net.initialize()
    net.hybridize()
    arrays = [mx.nd.array(value) for value in inputs.values()]
    net(*arrays)
    for key, value in sorted(net.collect_params().items()):
        value.set_data(mx.nd.array(random_of(numbers, key, value.shape)))
    outputs = net(*arrays)
    net.export(str(FOLDER / name))
    write_values(name, inputs, outputs if isinstance(outputs, list) else [outputs])


def write_values(name: str, inputs: dict[str, Any], outputs: list[Any]) -> None:
    """Write what goes into a model and what comes out of it."""
    made = {f"output_{n}": value.asnumpy() for n, value in enumerate(outputs)}
    np.savez_compressed(FOLDER / name, **inputs, **made)


# -- symbols ---------------------------------------------------------------------------------------


def squeezenet() -> Any:
    """Return a small SqueezeNet with the loss that older models have at their end."""
    x = S.Convolution(S.var("data"), kernel=(3, 3), stride=(2, 2), num_filter=8, name="conv1")
    x = S.BatchNorm(x, fix_gamma=True, name="norm1")
    x = S.Activation(x, act_type="relu", name="relu1")
    x = S.Pooling(x, kernel=(3, 3), stride=(2, 2), pool_type="max", pooling_convention="full",
                  name="pool1")  # fmt: skip
    for n in (1, 2):
        squeezed = S.Convolution(x, kernel=(1, 1), num_filter=4, name=f"squeeze{n}")
        squeezed = S.Activation(squeezed, act_type="relu", name=f"squeeze_relu{n}")
        one = S.Convolution(squeezed, kernel=(1, 1), num_filter=8, name=f"one{n}")
        three = S.Convolution(squeezed, kernel=(3, 3), pad=(1, 1), num_filter=8, name=f"three{n}")
        x = S.Activation(S.Concat(one, three, name=f"concat{n}"), act_type="relu",
                         name=f"fire{n}")  # fmt: skip
    x = S.Dropout(x, p=0.5, name="drop")
    x = S.Convolution(x, kernel=(1, 1), num_filter=5, no_bias=True, name="conv_last")
    x = S.Pooling(x, kernel=(1, 1), global_pool=True, pool_type="avg", name="pool_last")
    return S.SoftmaxOutput(S.Flatten(x, name="flat"), name="softmax")


def elementwise() -> Any:
    """Return operators that compute element by element; `a` is positive."""
    a, b, r = S.var("a_positive"), S.var("b"), S.var("r")
    unary = [
        "relu", "sigmoid", "tanh", "exp", "log", "log2", "log10", "log1p", "expm1", "sqrt",
        "rsqrt", "square", "abs", "sign", "floor", "ceil", "trunc", "fix", "round", "rint",
        "negative", "reciprocal", "sin", "cos", "tan", "sinh", "cosh", "arctan", "arcsinh", "erf",
        "softsign", "hard_sigmoid", "zeros_like", "ones_like", "logical_not", "identity",
        "BlockGrad", "log_sigmoid",
    ]  # fmt: skip
    positive = {"log", "log2", "log10", "sqrt", "rsqrt", "log1p", "reciprocal"}
    made = [getattr(S, name)(a if name in positive else b * 3) for name in unary
            if hasattr(S, name)]  # fmt: skip
    small = S.clip(b, a_min=-0.9, a_max=0.9)
    made += [S.arcsin(small), S.arccos(small), S.arctanh(small), S.arccosh(a + 1.5)]
    binary = ["add", "sub", "mul", "div"]
    made += [getattr(S, f"elemwise_{name}")(b, a) for name in binary]
    wide = [*binary, "mod", "power", "maximum", "minimum", "equal", "not_equal", "greater",
            "greater_equal", "lesser", "lesser_equal", "logical_and", "logical_or",
            "logical_xor"]  # fmt: skip
    made += [getattr(S, f"broadcast_{name}")(a, r) for name in wide]
    made += [
        a + 2,
        a - 2,
        2 - a,
        a * 2,
        a / 3,
        3 / a,
        b % 0.7,
        2 % a,
        a**1.5,
        2**b,
        S.maximum(b, 0.2),
        S.minimum(b, 0.2),
        b > 0.1,
        b >= 0.1,
        b < 0.1,
        b <= 0.1,
        b == 0.5,
        b != 0.5,
        a + b,
        a - b,
        a * b,
        b / a,
        a**b,
        S.maximum(a, b),
        S.minimum(a, b),
    ]
    made += [S.add_n(a, b, a), S.where(b > 0, a, b), S.where(S.var("c"), a, b),
             S.Cast(b * 5, dtype="int32"), S.cast(b, dtype="float64")]  # fmt: skip
    made += [S.Activation(b, act_type=kind)
             for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign")]  # fmt: skip
    made += [S.LeakyReLU(b, act_type=kind, slope=0.3) for kind in ("leaky", "elu", "gelu", "selu")]
    made += [S.LeakyReLU(b, act_type="prelu"), S.LeakyReLU(b, S.var("one"), act_type="prelu"),
             S.LogisticRegressionOutput(b, name="logistic")]  # fmt: skip
    return S.Group(made)


def images() -> Any:
    """Return operators on images, in one to three dimensions."""
    x, line, cube = S.var("x"), S.var("line"), S.var("cube")
    made = [
        S.Convolution(x, kernel=(3, 2), stride=(2, 1), pad=(1, 0), dilate=(1, 2), num_filter=4,
                      num_group=2),
        S.Convolution(line, kernel=(3,), stride=(2,), pad=(1,), num_filter=4, no_bias=True),
        S.Convolution(cube, kernel=(2, 2, 2), num_filter=3),
        S.Deconvolution(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), adj=(1, 0), num_filter=4),
        S.Deconvolution(x, kernel=(2, 2), num_filter=4, num_group=2, no_bias=False),
        S.Deconvolution(line, kernel=(4,), stride=(2,), pad=(1,), num_filter=2),
    ]  # fmt: skip
    for kind in ("max", "avg", "sum", "lp"):
        for rule in ("valid", "full"):
            made.append(S.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type=kind,
                                  pooling_convention=rule, p_value=2))  # fmt: skip
        made.append(S.Pooling(x, kernel=(3, 3), global_pool=True, pool_type=kind, p_value=2))
    for rule in ("valid", "full"):
        made.append(S.Pooling(x, kernel=(2, 3), stride=(2, 2), pad=(0, 1), pool_type="avg",
                              count_include_pad=False, pooling_convention=rule))  # fmt: skip
    made += [
        S.Pooling(line, kernel=(3,), stride=(2,), pool_type="max"),
        S.Pooling(line, kernel=(2,), stride=(2,), pad=(1,), pool_type="avg",
                  pooling_convention="full"),
        S.Pooling(cube, kernel=(2, 2, 2), pool_type="avg"),
        S.UpSampling(x, scale=2, sample_type="nearest"),
        S.UpSampling(x, scale=2, sample_type="bilinear", num_filter=4),
        S.UpSampling(x, scale=3, sample_type="bilinear", num_filter=4),
        S.contrib.AdaptiveAvgPooling2D(x, output_size=(3, 2)), S.contrib.AdaptiveAvgPooling2D(x),
        S.contrib.BilinearResize2D(x, height=9, width=5),
        S.contrib.BilinearResize2D(x, height=9, width=5, align_corners=False),
        S.Crop(x, h_w=(3, 4), offset=(1, 2), num_args=1),
        S.Crop(x, S.Pooling(x, kernel=(2, 2), stride=(2, 2)), center_crop=True, num_args=2),
        S.depth_to_space(x, block_size=2), S.space_to_depth(S.Pad(
            x, mode="reflect", pad_width=(0, 0, 0, 0, 1, 1, 1, 2)), block_size=2),
        S.Pad(x, mode="edge", pad_width=(0, 0, 0, 0, 1, 0, 2, 2)),
        S.Pad(x, mode="constant", pad_width=(0, 0, 0, 0, 1, 0, 2, 2), constant_value=1.5),
        S.BatchNorm(x, fix_gamma=False, eps=0.01, use_global_stats=True)[0],
        S.BatchNorm(x, axis=-1)[0], S.BatchNorm(line, fix_gamma=False)[0],
        S.InstanceNorm(x), S.GroupNorm(x, num_groups=2)[0], S.LayerNorm(x)[0],
        S.LayerNorm(x, axis=1, eps=0.1)[0], S.LRN(x, nsize=3, alpha=0.1, knorm=1.5)[0],
        S.L2Normalization(x)[0], S.L2Normalization(x, mode="channel")[0],
        S.L2Normalization(x, mode="spatial", eps=0.1)[0],
        S.SoftmaxActivation(x, mode="channel"), S.SoftmaxActivation(x),
        S.SoftmaxOutput(x, multi_output=True, name="of_channels"),
        S.SoftmaxOutput(x, preserve_shape=True, name="of_rows"),
        S.LeakyReLU(x, act_type="prelu"),
    ]  # fmt: skip
    return S.Group(made)


def deconvolutions() -> Any:
    """Return transposed convolutions that MXNet computes only without oneDNN."""
    x = S.var("x")
    sizes = {"kernel": (4, 3), "stride": (2, 2), "num_filter": 2}
    return S.Group([
        S.Deconvolution(x, target_shape=(13, 14), **sizes),
        S.Deconvolution(x, target_shape=(12, 15), **sizes),
        # With a stride other than 1, the dilated ones of MXNet 1.9.1 are wrong on CPUs.
        S.Deconvolution(x, kernel=(4, 3), dilate=(2, 3), pad=(1, 2), num_filter=2),
    ])  # fmt: skip


def shapes() -> Any:
    """Return operators that shape, cut, join, reduce and read at indices."""
    x, m, v = S.var("x"), S.var("m"), S.var("v")  # (2, 3, 4), (3, 4), (4,)
    places, lengths = S.var("places"), S.var("lengths")
    codes = [
        (0, -1),
        (-2,),
        (-3, 0),
        (0, -3),
        (-4, 1, 2, -2),
        (0, -4, -1, 3, 0),
        (4, -1),
        (0, 0, 2, 2),
        (-1, 1),
    ]
    made = [S.reshape(x, shape=shape) for shape in codes]
    made += [S.reshape(x, shape=(0, -1), reverse=True), S.reshape(x, shape=(-1, 0), reverse=True)]
    parts = [
        *S.SliceChannel(x, num_outputs=3, axis=1),
        *S.split(x, num_outputs=2, axis=-1),
        *S.split(x, num_outputs=2, axis=0, squeeze_axis=True),
        *S.split_v2(x, (1, 3), axis=2),
        *S.split_v2(x, 2, axis=0, squeeze_axis=True),
        S.slice(x, begin=(0, 1), end=(2, 3)),
        S.slice(x, begin=(None, 2, -1), end=(None, None, None), step=(None, -1, -2)),
        S.slice(x, begin=(0, 0, 1), end=(2, 3, 4), step=(1, 2, 2)),
        S.slice_axis(x, axis=1, begin=1, end=None),
        S.slice_axis(x, axis=-1, begin=-3, end=-1),
        S.slice_like(x, S.slice(x, begin=(0, 0, 0), end=(1, 2, 2))),
        S.slice_like(x, S.slice(x, begin=(0, 0, 0), end=(1, 2, 2)), axes=(-1,)),
    ]
    made += parts
    made += [
        S.Flatten(x),
        S.transpose(x),
        S.transpose(x, axes=(1, 0, 2)),
        S.SwapAxis(x, dim1=0, dim2=2),
        S.Concat(x, x * 2, dim=2),
        S.concat(x, x, x),
        S.stack(m, m + 1, axis=1),
        S.stack(v, v),
        S.expand_dims(x, axis=1),
        S.expand_dims(x, axis=-1),
        S.squeeze(S.expand_dims(x, axis=1)),
        S.squeeze(S.expand_dims(x, axis=1), axis=1),
        S.tile(m, reps=(2, 1, 2)),
        S.repeat(m, repeats=2, axis=1),
        S.repeat(m, repeats=2),
        S.reverse(x, axis=1),
        S.flip(x, axis=(0, 2)),
        S.broadcast_to(S.expand_dims(m, axis=0), shape=(2, 0, 0)),
        S.broadcast_axis(S.expand_dims(m, axis=0), axis=0, size=3),
        S.broadcast_like(S.expand_dims(m, axis=0), x),
        S.reshape_like(S.reshape(x, shape=(-1,)), x),
        S.sum(x),
        S.sum(x, axis=1),
        S.mean(x, axis=(0, 2), keepdims=True),
        S.max(x, axis=-1),
        S.min(x, axis=1, exclude=True),
        S.prod(x, axis=2),
        S.norm(x),
        S.norm(x, ord=1, axis=1),
        S.mean(x),
        S.argmax(x, axis=1),
        S.argmin(x, axis=2, keepdims=True),
        S.argmax(x),
        S.argmax_channel(m),
        S.dot(m, S.transpose(m)),
        S.dot(m, m, transpose_a=True),
        S.dot(m, m, transpose_b=True),
        S.dot(v, v),
        S.dot(m, v),
        S.dot(x, S.transpose(m)),
        S.batch_dot(x, x, transpose_b=True),
        S.batch_dot(x, x, transpose_a=True),
        S.linalg.gemm2(x, x, transpose_b=True, alpha=0.5),
        S.FullyConnected(x, num_hidden=3),
        S.FullyConnected(x, num_hidden=3, flatten=False, no_bias=True),
        S.softmax(x),
        S.softmax(x, axis=1, temperature=2.0),
        S.softmin(x),
        S.log_softmax(x, axis=0),
        S.Embedding(S.var("words"), input_dim=7, output_dim=3),
        S.take(m, places),
        S.take(x, places, axis=2, mode="wrap"),
        S.take(x, places, axis=-1),
        S.pick(m, places, axis=1),
        S.pick(m, places, axis=1, keepdims=True, mode="wrap"),
        S.one_hot(places, depth=4),
        S.one_hot(places, depth=4, on_value=2, off_value=-1, dtype="int32"),
        S.gather_nd(x, S.var("pairs")),
        S.sort(x, axis=1),
        S.sort(m, is_ascend=False),
        S.argsort(x, axis=2),
        S.topk(x, k=2),
        S.topk(x, k=2, axis=1, ret_typ="value", is_ascend=True),
        *S.topk(x, k=2, ret_typ="both"),
        S.SequenceMask(x, lengths, use_sequence_length=True, value=-1.0),
        S.SequenceReverse(x),
        S.SequenceReverse(x, lengths, use_sequence_length=True),
        S.SequenceLast(x),
        S.zeros(shape=(2, 2)),
        S.ones(shape=(3,)),
        S.full((2,), 1.5),
        S.arange(1, 7, 2),
        S.arange(0, 3, repeat=2),
        S.contrib.arange_like(x, axis=1),
        S.contrib.arange_like(m, start=2.0, step=0.5),
        S.shape_array(x),
        S.size_array(x),
        S.Dropout(x)[0],
    ]
    return S.Group(made)


def recurrent() -> Any:
    """Return recurrent layers with their last states."""
    x, made = S.var("x"), []
    for mode in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        for layers, both_ways in ((1, False), (2, True)):
            made.append(S.RNN(x, mode=mode, state_size=3, num_layers=layers,
                              bidirectional=both_ways, state_outputs=True))  # fmt: skip
    return S.Group(made)


def attention() -> Any:
    """Return the products of attention, of two heads with three elements."""
    both, query, pair = S.var("both"), S.var("query"), S.var("pair")
    scores = S.contrib.interleaved_matmul_selfatt_qk(both, heads=2)
    others = S.contrib.interleaved_matmul_encdec_qk(query, pair, heads=2)
    weights = S.softmax(scores, S.Cast(S.var("lengths"), dtype="int32"), use_length=True)
    mixed = S.contrib.interleaved_matmul_selfatt_valatt(both, weights, heads=2)
    return S.Group([
        scores, others, weights, mixed, S.log_softmax(others, axis=1),
        S.contrib.interleaved_matmul_encdec_valatt(pair, S.softmax(others), heads=2),
        S.contrib.div_sqrt_dim(mixed), S.softmax(others, temperature=3.0), S.cumsum(query, axis=1),
        S.cumsum(query), S.eye(3), S.eye(2, 3, k=1), S.cbrt(query), S.degrees(query),
        S.radians(query), S.smooth_l1(query, scalar=2.0),
    ])  # fmt: skip


def write_symbol(name: str, symbol: Any, **inputs: Any) -> None:
    """Write a symbol as `mx.model.save_checkpoint` does."""
    numbers = np.random.default_rng(0)
    args, _, states = symbol.infer_shape(**{key: value.shape for key, value in inputs.items()})
    random = {
        key: mx.nd.array(random_of(numbers, key, shape))
        for key, shape in [
            *zip(symbol.list_arguments(), args, strict=True),
            *zip(symbol.list_auxiliary_states(), states, strict=True),
        ]
        if key not in inputs
    }
    arrays = {key: mx.nd.array(value) for key, value in inputs.items()}
    names = symbol.list_auxiliary_states()
    runner = symbol.bind(
        mx.cpu(),
        {k: v for k, v in {**random, **arrays}.items() if k not in names},
        aux_states={key: random[key] for key in names},
        grad_req="null",
    )
    outputs = runner.forward(is_train=False)
    kept = {key: value for key, value in random.items() if not key.endswith("label")}
    mx.model.save_checkpoint(
        str(FOLDER / name),
        0,
        symbol,
        {k: v for k, v in kept.items() if k not in names},
        {key: kept[key] for key in names},
    )
    write_values(name, inputs, outputs)


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    numbers = np.random.default_rng(1)

    def floats(*shape: int) -> Any:
        return numbers.normal(size=shape).astype("float32")

    if sys.argv[1:] == ["deconvolutions"]:
        write_symbol("deconvolutions", deconvolutions(), x=floats(1, 3, 6, 7))
        return
    write_gluon("resnet", resnet(), data=floats(2, 3, 16, 16))
    write_gluon("mobilenet", mobilenet(), data=floats(1, 3, 16, 16))
    write_gluon("texts", Texts(), data=numbers.integers(0, 20, (7, 2)).astype("float32"))
    write_symbol("recurrent", recurrent(), x=floats(5, 2, 4))
    write_symbol("squeezenet", squeezenet(), data=floats(1, 3, 20, 20))
    write_symbol(
        "elementwise",
        elementwise(),
        a_positive=np.abs(floats(2, 3)) + 0.1,
        b=np.asarray([[0.5, -0.5, 0.1], [1.2, -1.5, 0]], "float32"),
        r=np.asarray([[0.6, -1.2, 2]], "float32"),
        c=np.asarray([0, 2], "float32"),
        one=np.asarray([0.3], "float32"),
    )
    write_symbol(
        "attention",
        attention(),
        both=floats(4, 2, 18),
        query=floats(3, 2, 6),
        pair=floats(4, 2, 12),
        lengths=numbers.integers(1, 5, (4, 4)).astype("float32"),
    )
    write_symbol(
        "images", images(), x=floats(1, 4, 6, 7), line=floats(1, 2, 9), cube=floats(1, 2, 4, 3, 3)
    )
    write_symbol(
        "shapes",
        shapes(),
        x=floats(2, 3, 4),
        m=floats(3, 4),
        v=floats(4),
        words=np.asarray([[1, 9], [3, 0]], "float32"),
        places=np.asarray([2, 0, 1], "float32"),
        pairs=np.asarray([[0, 1], [2, 0]], "float32"),
        lengths=np.asarray([1, 2, 1], "float32"),
    )


if __name__ == "__main__":
    main()
