"""Networks of Darknet compute what its definitions say, or are refused with a reason."""

import math
import struct

import numpy as np
import pytest

from dlcompiler import graph
from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.darknet import reading
from dlcompiler.graph.frontends.darknet.activations import ACTIVATIONS
from dlcompiler.graph.frontends.darknet.operators import OPERATORS, REFUSED
from tests.graph.frontends import darknet_reference
from tests.graph.frontends.darknet_reference import SMALL, Reference, weights_of

NET = "[net]\nheight=9\nwidth=8\nchannels=4\n"
EVEN = "[net]\nheight=4\nwidth=6\nchannels=8\n"

CASES = {
    "convolutional": NET + "[convolutional]\nfilters=6\nsize=3\npad=1\nactivation=leaky\n",
    "convolutional-normalized": NET + "[conv]\nbatch_normalize=1\nfilters=5\nsize=3\nstride=2\n",
    "convolutional-groups": NET + "[convolutional]\nfilters=6\nsize=2\ngroups=2\npadding=1\n"
    "batch_normalize=1\nactivation=relu\n",
    "convolutional-depthwise": NET + "[convolutional]\nfilters=4\nsize=5\ngroups=4\npad=1\n",
    "convolutional-strides": NET + "[convolutional]\nfilters=2\nsize=3\nstride_x=2\nstride_y=3\n",
    "convolutional-dilated": NET + "[convolutional]\nfilters=2\nsize=3\npad=1\ndilation=2\n",
    "convolutional-flipped": NET + "[convolutional]\nfilters=3\nsize=3\nflipped=1\n",
    "convolutional-even": NET + "[convolutional]\nfilters=3\nsize=4\npad=1\n",
    "maxpool": NET + "[maxpool]\nsize=2\nstride=2\n",
    "maxpool-1": NET + "[maxpool]\nsize=2\nstride=1\n",
    "maxpool-wide": NET + "[maxpool]\nsize=5\nstride=1\n",
    "maxpool-3-2": NET + "[max]\nsize=3\nstride=2\n",
    "maxpool-padding": NET + "[maxpool]\nsize=3\nstride=2\npadding=3\n",
    "maxpool-none": NET + "[maxpool]\nsize=2\nstride=2\npadding=0\n",
    "maxpool-strides": NET + "[maxpool]\nsize=3\nstride_x=1\nstride_y=2\n",
    "local_avgpool": NET + "[local_avgpool]\nsize=3\nstride=2\n",
    "avgpool": NET + "[avgpool]\n",
    "connected": NET + "[connected]\noutput=7\nactivation=tanh\n",
    "connected-normalized": NET + "[connected]\noutput=7\nbatch_normalize=1\nactivation=ramp\n",
    "connected-inputs": "[net]\ninputs=12\n[connected]\noutput=7\n[connected]\noutput=3\n",
    "connected-convolutional": NET + "[connected]\noutput=7\n[convolutional]\nfilters=3\n",
    "activation": NET + "[activation]\nactivation=mish\n",
    "dropout": NET + "[dropout]\nprobability=.5\n[convolutional]\nfilters=2\n",
    "softmax": NET + "[softmax]\n",
    "softmax-groups": NET + "[softmax]\ngroups=6\ntemperature=2.5\n",
    "cost": NET + "[avgpool]\n[softmax]\n[cost]\ntype=sse\n",
    "route": NET + "[maxpool]\nstride=2\n[maxpool]\nsize=3\n[route]\nlayers=-1,0, -2\n",
    "route-one": NET + "[maxpool]\nstride=2\n[avgpool]\n[route]\nlayers=-2\n[maxpool]\nsize=2\n",
    "route-groups": NET + "[convolutional]\nfilters=6\n[maxpool]\nsize=3\n[route]\nlayers=0,1\n"
    "groups=2\ngroup_id=1\n",
    "route-vectors": NET + "[connected]\noutput=6\n[connected]\noutput=4\n[route]\nlayers=0,1\n",
    "shortcut": NET + "[maxpool]\nsize=3\n[convolutional]\nfilters=4\n[shortcut]\nfrom=-2\n",
    "shortcut-more-channels": NET + "[convolutional]\nfilters=6\n[convolutional]\nfilters=3\n"
    "[shortcut]\nfrom=0\nactivation=leaky\n",
    "shortcut-fewer-channels": NET + "[convolutional]\nfilters=3\n[convolutional]\nfilters=6\n"
    "[shortcut]\nfrom=0\n",
    "shortcut-larger": EVEN + "[maxpool]\nsize=3\n[maxpool]\nsize=2\nstride=2\n"
    "[convolutional]\nfilters=7\n[shortcut]\nfrom=0\nbeta=0.5\n",
    "shortcut-smaller": NET + "[maxpool]\nsize=4\nstride=4\n[upsample]\nstride=3\n"
    "[convolutional]\nfilters=3\n[shortcut]\nfrom=0\n",
    "shortcut-several": NET + "[maxpool]\nsize=3\n[convolutional]\nfilters=5\n"
    "[convolutional]\nfilters=4\n[shortcut]\nfrom=-2,0\n",
    "shortcut-scaled": NET + "[maxpool]\nsize=3\n[convolutional]\nfilters=4\n[shortcut]\n"
    "from=0\nalpha=0.25\nbeta=3\n",
    "upsample": NET + "[upsample]\n",
    "upsample-scale": NET + "[upsample]\nstride=3\nscale=0.5\n",
    "reorg": EVEN + "[reorg]\nstride=2\n",
    "reorg-reverse": EVEN + "[reorg]\nstride=2\nreverse=1\n",
    "reorg3d": EVEN + "[reorg3d]\nstride=2\n",
    "scale_channels": NET + "[maxpool]\nsize=3\n[avgpool]\n[scale_channels]\nfrom=0\n"
    "activation=relu\n",
    "sam": NET + "[maxpool]\nsize=3\n[convolutional]\nfilters=4\n[sam]\nfrom=-2\n",
    "yolo": NET + "[convolutional]\nfilters=16\nactivation=linear\n[yolo]\nmask=1,2\nnum=6\n"
    "classes=3\nanchors = 10,14,  23,27\nignore_thresh = .7\n",
    "yolo-scaled": NET + "[convolutional]\nfilters=7\n[yolo]\nclasses=2\nnum=1\nscale_x_y=1.2\n",
    "yolo-new-coords": NET + "[convolutional]\nfilters=7\n[yolo]\nclasses=2\nnum=1\n"
    "scale_x_y = 2.0\nnew_coords=1\n",
    "yolo-twice": NET + "[convolutional]\nfilters=6\n[yolo]\nclasses=1\nnum=1\n[route]\nlayers=0\n"
    "[yolo]\nclasses=1\nmask=0\n[maxpool]\nsize=2\n",
    "region": NET + "[convolutional]\nfilters=18\n[region]\nclasses=4\nnum=2\nsoftmax=1\n",
    "region-no-softmax": NET + "[convolutional]\nfilters=18\n[region]\nclasses=4\nnum=2\n",
    "region-background": NET + "[convolutional]\nfilters=18\n[region]\nclasses=4\nnum=2\n"
    "softmax=1\nbackground=1\n",
    "region-background-only": NET + "[convolutional]\nfilters=14\n[region]\nclasses=4\nnum=2\n"
    "background=1\ncoords=2\n",
    "detection": NET + "[connected]\noutput=52\nactivation=linear\n[detection]\nclasses=3\n"
    "coords=4\nnum=2\nside=2\nsqrt=1\n",
    "detection-softmax": NET + "[connected]\noutput=52\nactivation=linear\n[detection]\n"
    "classes=3\ncoords=4\nnum=2\nside=2\nsoftmax=1\n",
}  # fmt: skip
"""Name, beginning with the layer -> text of a network."""


def images_for(text, batch=2):
    """Return random images, or vectors, for a network."""
    net = darknet_reference.sections_of(text)[0][1]
    sides = [int(net[k]) for k in ("channels", "height", "width") if k in net]
    shape = (batch, *(sides or [int(net["inputs"])]))
    return np.random.default_rng(1).normal(0, 1.5, shape).astype("float32")


def check(found, expected):
    """Compare float32 with float64: errors add up to a few units of the largest element."""
    outputs = found if isinstance(found, tuple) else (found,)
    for got, want in zip(outputs, expected, strict=True):
        assert (got.dtype, got.shape) == (np.float32, want.shape)
        assert np.abs(got - want).max() <= 2e-6 * max(np.abs(want).max(), 1)


def imported(text):
    """Return the module of a network with random weights, images and what Darknet computes."""
    reference, images = Reference(text), images_for(text)
    expected = reference.run(images)
    module = graph.from_darknet(text.encode(), reference.numbers.bytes(), batch=len(images))
    return module, images, expected


@pytest.mark.parametrize("name", CASES)
def test_a_layer_computes_the_same(name):
    module, images, expected = imported(CASES[name])
    check(graph.evaluate(module, images), expected)


@pytest.mark.campaign
@pytest.mark.parametrize("name", CASES)
def test_a_compiled_layer_computes_the_same(name):
    module, images, expected = imported(CASES[name])
    check(graph.build(module)(images), expected)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_an_activation_computes_the_same(name):
    text = f"[net]\ninputs=20\n[activation]\nactivation={name}\n"
    module = graph.from_darknet(text.encode())
    points = np.linspace(-7, 7, 20).astype("float32")[None]
    check(graph.evaluate(module, points), Reference(text).run(points))


def test_every_layer_has_a_case():
    assert {name.partition("-")[0] for name in CASES} == OPERATORS.keys()
    assert ACTIVATIONS.keys() == darknet_reference.ACTIVATIONS.keys()


def block(filters, size=3):
    return f"""
[convolutional]
batch_normalize=1
filters={filters}
size={size}
stride=1
pad=1
activation=leaky
"""


POOL = "\n[maxpool]\nsize=2\nstride=2\n"
BOXES = """
[convolutional]
size=1
stride=1
pad=1
filters={}
activation=linear

[yolo]
mask = {}
anchors = 10,14,  23,27,  37,58,  81,82,  135,169,  344,319
classes={}
num=6
jitter=.3
ignore_thresh = .7
truth_thresh = 1
random=1
"""


def tiny_yolo(side, classes, divisor):
    """Return a network like yolov3-tiny, with a part of its filters."""
    first, last = (
        BOXES.format(3 * (classes + 5), mask, classes) for mask in ("3,4,5", "0,1,2")
    )  # fmt: skip
    return (
        f"[net]\n# Testing\nbatch=1\nsubdivisions=1\nwidth={side}\nheight={side}\nchannels=3\n"
        "momentum=0.9\ndecay=0.0005\nangle=0\nsaturation = 1.5\nexposure = 1.5\nhue=.1\n\n"
        "learning_rate=0.001\nburn_in=1000\nmax_batches = 500200\npolicy=steps\n"
        "steps=400000,450000\nscales=.1,.1\n"
        + "".join(block(filters // divisor) + POOL for filters in (16, 32, 64, 128, 256))
        + block(512 // divisor) + "\n[maxpool]\nsize=2\nstride=1\n" + block(1024 // divisor)
        + "\n###########\n" + block(256 // divisor, 1) + block(512 // divisor) + first
        + "\n[route]\nlayers = -4\n" + block(128 // divisor, 1) + "\n[upsample]\nstride=2\n"
        + "\n[route]\nlayers = -1, 8\n" + block(256 // divisor) + last
    )  # fmt: skip


CLASSIFIER = (
    "[net]\nheight=32\nwidth=32\nchannels=3\nmax_crop=320\npolicy=poly\npower=4\n"
    + block(4) + POOL + block(8) + POOL + block(12)
    + "\n[maxpool]\nsize=2\nstride=2\npadding=1\n"
    "\n[convolutional]\nfilters=10\nsize=1\nstride=1\npad=1\nactivation=leaky\n"
    "\n[avgpool]\n\n[softmax]\ngroups=1\n\n[cost]\ntype=sse\n"
)  # fmt: skip


@pytest.mark.parametrize("text", [tiny_yolo(96, 3, 8), CLASSIFIER], ids=["yolo", "classifier"])
def test_a_network_computes_the_same(text):
    reference, images = Reference(text), images_for(text, 1)
    expected = reference.run(images)
    module = graph.from_darknet(text.encode(), reference.numbers.bytes())
    check(graph.evaluate(module, images), expected)
    check(graph.build(module)(images), expected)


def test_yolov3_tiny_takes_the_numbers_of_its_published_file():
    """Which has 35,434,956 bytes."""
    module = graph.from_darknet(tiny_yolo(416, 80, 1).encode())
    kinds = [graph.type_of(field).shape for field in module["main"].body.fields]
    assert kinds == [(1, 255, 13, 13), (1, 255, 26, 26)]
    weights = [math.prod(param.type.shape) for param in module["main"].params[1:]]
    assert 20 + 4 * sum(weights) == 35_434_956


def test_files_and_places(tmp_path):
    cfg, weights = tmp_path / "n.cfg", tmp_path / "n.weights"
    cfg.write_text(SMALL)
    weights.write_bytes(weights_of(SMALL, (1, 3, 8, 8)))
    module = graph.from_darknet(cfg, str(weights))
    found = [node for node in graph.ir.post_order(module["main"].body)
             if isinstance(node, graph.Call) and node.name == "maxpool_1"]  # fmt: skip
    assert str(found[0].span) == f"maxpool_1 ({cfg}:16)"
    assert graph.modules_equal(graph.parse(graph.module_text(module)), module)


def test_weights_are_not_copied():
    data = weights_of(SMALL, (1, 3, 8, 8))
    module = graph.from_darknet(SMALL.encode(), data)
    whole = np.frombuffer(data, "uint8")
    shared = [
        node.name for node in graph.ir.post_order(module["main"].body)
        if isinstance(node, graph.Constant) and np.shares_memory(node.value, whole)
    ]  # fmt: skip
    assert {"convolutional_0_weights", "convolutional_0_scales", "connected_6_weights"} <= set(
        shared
    )
    assert len(shared) == 8


def test_without_weights_they_are_parameters():
    reference, images = Reference(SMALL), images_for(SMALL, 1)
    expected = reference.run(images)
    module = graph.from_darknet(SMALL.encode())
    names = [param.name for param in module["main"].params]
    assert names[:3] == ["input", "convolutional_0_biases", "convolutional_0_scales"]
    kinds = [param.type.shape for param in module["main"].params[1:]]
    arrays = [
        part.reshape(kind) for part, kind in zip(reference.numbers.file, kinds, strict=True)
    ]  # fmt: skip
    check(graph.evaluate(module, images, *arrays), expected)


@pytest.mark.parametrize(
    ("version", "seen", "is_transposed"),
    [((0, 1, 0), 4, False), ((0, 2, 5), 8, False), ((1, 0, 0), 8, False), ((0, 1001, 0), 4, True)],
)
def test_versions_of_weights(version, seen, is_transposed):
    reference = Reference(CASES["connected"], is_transposed=is_transposed)
    images = images_for(CASES["connected"])
    expected = reference.run(images)
    data = reference.numbers.bytes(version, b"\1" * seen)
    module = graph.from_darknet(CASES["connected"].encode(), data, batch=2)
    check(graph.evaluate(module, images), expected)


def test_the_first_of_equal_options_counts():
    module = graph.from_darknet((NET + "[maxpool]\nsize=3\nsize=x\n;size=4\n").encode())
    assert module["main"].body.attrs["pool_size"] == (3, 3)


def test_a_deep_network():
    text = NET + "[dropout]\n[shortcut]\nfrom=-1\n" * 1000
    body = graph.from_darknet(text.encode())["main"].body
    assert graph.type_of(body).shape == (1, 4, 9, 8)


CONV = "[convolutional]\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "does not begin"),
        ("[convolutional]\n", "does not begin"),
        ("height=3\n", "line 1 is no section"),
        ("[net]\nheight\n", "line 2 is no section"),
        ("[net]\nheight=\n", "line 2 is no section"),
        ("[net]\nheight=9\n", "another number of layers"),
        (NET, "another number of layers"),
        ("[net]\nheight=9\n" + CONV, "the size of its input is missing"),
        ("[net]\nheight=9x\nwidth=8\nchannels=4\n" + CONV, "option height is no such number"),
        ("[net]\nheights=9\ninputs=2\n" + CONV, "there is no such option"),
        ("[net]\nheight=99999\nwidth=99999\nchannels=9\n" + CONV, "empty or too large"),
        (NET + "[rnn]\noutput=3\n", "a module has no place for"),
        (NET + "[local]\nsize=3\n", r"there is no such layer here.*\n.*\[local\]\n.*maxpool"),
        (NET + "[" + "a" * 999 + "]\n", "there is no such layer"),
        (NET + "[convolutional\n", "line 5 is no section"),
        (NET + "[[convolutional]]\n", "there is no such layer"),
        ("[net]\nheight=3\nwidth=3\nchannels=4\ninputs=5\n" + CONV, r"other inputs.*\n.*5\n.*36"),
        ("[net]\n" + "".join(f"{side}=2147483647\n" for side in ("height", "width", "channels"))
         + CONV, "net, line 1: too many elements"),
        (NET + CONV + "filter=3\n", "there is no such option here.*\n.*filter\n.*filters"),
        (NET + CONV + "filters=-3\n", "option filters is no such number"),
        (NET + CONV + "filters=" + "9" * 9999, "option filters is no such number"),
        (NET + CONV + "filters=400000000\n", "its result is empty or too large"),
        (NET + CONV + "filters=2147483647\nsize=99\n", "its weights are too large"),
        (NET + CONV + "size=10\n", "empty or too large|convolutional_0, line 5"),
        (NET + CONV + "stride=0\n", "option stride is no such number"),
        (NET + CONV + "groups=3\n", "cannot be divided into groups"),
        (NET + CONV + "size=3\ndilation=2\n", "its padding does not fit"),
        (NET + CONV + "xnor=1\n", "option xnor is not supported"),
        (NET + CONV + "[conv]\nshare_index=0\n", "there is no such option"),
        (NET + CONV + "dontload=1\n", "option dontload is not supported"),
        (NET + CONV + "activation=relu7\n", "its activation is not known"),
        (NET + "[connected]\noutput=2147483647\n", "its weights are too large"),
        (NET + "[softmax]\ngroups=5\n", "cannot be divided into groups"),
        (NET + "[softmax]\ntemperature=0\n", "its temperature is 0"),
        (NET + "[softmax]\ntemperature=nan\n", "option temperature is no float32"),
        (NET + "[softmax]\ntree=/etc/passwd\n", "option tree is not supported"),
        (NET + "[softmax]\ntemperature=1e-300\n", "its temperature is 0"),
        (NET + "[upsample]\nscale=1e300\n", "option scale is no float32"),
        (NET + "[upsample]\nscale=1_0\n", "option scale is no float32"),
        (NET + "[upsample]\nscale=\u0661\n", "option scale is no float32"),
        (NET + "[maxpool]\nsize=2\npadding=4\n", "its padding is as large"),
        (NET + "[maxpool]\nmaxpool_zero_nonmax=1\n", "option maxpool_zero_nonmax is not supported"),
        (NET + "[reorg3d]\nreverse=1\n", "option reverse is not supported"),
        (NET + "[upsample]\nstride=-2\n", "option stride is no such number"),
        (NET + "[upsample]\nstride=9999\n", "empty or too large"),
        (NET + "[upsample]\nstride=2147483647\n", "upsample_0, line 5: .*too many elements"),
        (NET + "[reorg]\nstride=2\n", "cannot be divided into blocks"),
        (NET + "[route]\n", "option layers names no layers"),
        (NET + "[route]\nlayers=0\n", "names no layers.*\n.*\n.*a layer before it"),
        (NET + "[maxpool]\n[route]\nlayers=-1,\n", "option layers is no such number"),
        (NET + "[maxpool]\n[route]\nlayers=-1,,0\n", "option layers is no such number"),
        (NET + "[maxpool]\n[route]\nlayers=1\n", "option layers names no layers"),
        (NET + "[maxpool]\n[route]\nlayers=-2\n", "option layers names no layers"),
        (NET + "[maxpool]\n[route]\nlayers=7\n", "option layers names no layers"),
        (NET + "[maxpool]\n[avgpool]\n[route]\nlayers=0,1\n", "images of different sizes"),
        (NET + "[maxpool]\n[route]\nlayers=0\ngroups=2\ngroup_id=2\n", "no such group"),
        (NET + "[maxpool]\n" + "[route]\nlayers=-1,-1,-1,-1\n" * 99, "empty or too large"),
        (NET + "[maxpool]\n[avgpool]\n[shortcut]\nfrom=0,-1\n", "images have different sizes"),
        (NET + "[maxpool]\nstride_x=4\n[shortcut]\nfrom=0\nweights_type=per_channel\n",
         "option weights_type is not supported"),
        (NET + "[maxpool]\nstride_x=4\n[maxpool]\nstride_y=4\n[shortcut]\nfrom=0\n",
         "another ratio of sides"),
        (NET + "[maxpool]\n[scale_channels]\nfrom=0\n", "a number for each channel"),
        (NET + "[maxpool]\n[avgpool]\n[sam]\nfrom=0\n", "images have different sizes"),
        (NET + "[yolo]\nclasses=3\n", r"another number of channels.*\n.*4\n.*8: 1 boxes of 8"),
        (NET + "[region]\ncoords=1\n", "option coords is no such number"),
        (NET + "[detection]\nside=3\n", "another number of elements"),
        (NET + "[cost]\n[maxpool]\n", "a layer follows the cost"),
        (NET + "[maxpool]\n[route]\nlayers=" + "0," * 2001, "option layers is too long"),
        (NET + "[maxpool]\n" + ("[shortcut]\nfrom=0" + ",0" * 1000 + "\n") * 11,
         r"too many numbers.*\n.*11,000 commas\n.*10,000"),
        (7, "not a model"),
        ("no such file", "cannot be read"),
    ],
)  # fmt: skip
def test_refusals(text, problem):
    is_text = isinstance(text, str) and text != "no such file"
    with pytest.raises(GraphError, match=problem):
        graph.from_darknet(text.encode() if is_text else text)


def test_states_are_refused_by_name():
    for kind in REFUSED:
        with pytest.raises(GraphError, match=f"{kind}_0, line 5"):
            graph.from_darknet((NET + f"[{kind}]\n").encode())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data: data[:15], "no header"),
        (lambda data: data[:16], r"end too early.*\n.*0 floats left\n.*4 biases"),
        (lambda data: data[:-4], r"end too early.*\n.*799 floats left\n.*800 weights"),
        (lambda data: data[:-1], r"end too early"),
        (lambda data: data + bytes(8), "2 floats of"),
        (lambda data: data + bytes(3), "0 floats and 3 bytes"),
        (lambda data: struct.pack("<i", 2**31 - 1) + data[4:], "1 floats of"),
    ],
)
def test_damaged_weights(change, problem):
    data = change(weights_of(SMALL, (1, 3, 8, 8)))
    with pytest.raises(GraphError, match=problem):
        graph.from_darknet(SMALL.encode(), data)


def test_limits(monkeypatch):
    monkeypatch.setattr(reading, "MOST_LAYERS", 2)
    with pytest.raises(GraphError, match="1 to 2"):
        graph.from_darknet((NET + "[avgpool]\n" * 3).encode())
    monkeypatch.setattr(reading, "MOST_TEXT", 9)
    with pytest.raises(GraphError, match="too large"):
        graph.from_darknet(NET.encode())
    with pytest.raises(GraphError, match="not a number of images"):
        graph.from_darknet(SMALL.encode(), batch=0)
