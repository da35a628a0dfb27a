"""Layout rules of operators: a call in another layout computes the same, stored otherwise."""

import numpy as np
import pytest

from dlcompiler.errors import GraphError
from dlcompiler.graph.interpreter import type_of_value
from dlcompiler.graph.ir import TensorType, TupleType
from dlcompiler.graph.operators import REGISTRY, CallTypes, Result
from dlcompiler.graph.operators.attributes import completed
from dlcompiler.graph.operators.layouts import layout_of
from dlcompiler.ir.numeric import quiet
from dlcompiler.ops.rounding import UNITS
from tests.graph.operators.cases import CASES
from tests.graph.operators.definitions import calls_of
from tests.graph.operators.operator_cases import Given, case

IMAGE = "NCHW"
WANTED = ("NHWC", "NCHW2c", "CNHW")


DATA = (2, 4, 3, 5)
BINARY = [case(DATA, shape) for shape in (DATA, (4, 1, 1), (1, 4, 3, 1), (5,), (), (1, 1, 1))]
MORE = {
    "clip": [case(DATA, a_min=2.0, a_max=3.0)],
    "cast": [case(DATA, dtype="int32")], "reinterpret": [case(DATA, dtype="int32")],
    "where": [case(Given(DATA, "bool"), (4, 1, 1), ()), case(Given((), "bool"), DATA, DATA)],
    "concatenate": [case([DATA, DATA], axis=axis) for axis in (0, 1, -1)],
    "split": [case(DATA, indices_or_sections=2, axis=1), case(DATA, indices_or_sections=(1,),
                                                            axis=-1)],
    "strided_slice": [case(DATA, begin=(1, 2), end=(2, 4)), case(DATA, begin=1, end=9, axes=-1)],
    "nn.pad": [case(DATA, pad_width=((0, 0), (0, 0), (1, 2), (0, 3))),
               case(DATA, pad_width=((1, 0), (0, 1), (0, 0), (0, 0)))],
    "nn.mirror_pad": [case(DATA, pad_width=((0, 0), (0, 0), (1, 2), (0, 3)))],
    "nn.bias_add": [case(DATA, (4,)), case(DATA, (5,), axis=3)],
    "nn.prelu": [case(DATA, (4,)), case(DATA, (3,), axis=2)],
    "nn.rms_norm": [case(DATA, (4,), axis=1), case(DATA, (5,))],
    "nn.lrn": [case(DATA), case(DATA, axis=3)],
    "on_device": [case(DATA, device="cpu")],
    "device_copy": [case(DATA, source="cpu", target="gpu")],
}  # fmt: skip
"""Calls with images, of operators whose cases have none."""


def cases_of_images(name):
    """Return the cases of an operator, and those with images."""
    names, given = REGISTRY[name].inputs, MORE.get(name)
    if given is None and names == ("lhs", "rhs"):
        given = BINARY
    if given is None and names == ("data",):
        attributes = {attribute.name for attribute in REGISTRY[name].attributes}
        axes = (None, (1,), (0, 2), (3,)) if "keepdims" in attributes else (1, 3)
        given = [case(DATA, axis=axis) for axis in axes] if "axis" in attributes else [case(DATA)]
    return [*CASES[name], *(given or [])]


def whole(shape, generator):
    """Return small whole numbers, whose sums and products are exact."""
    return generator.integers(1, 5, shape).astype("float32")


def image_calls(name):
    """Yield calls whose data has four dimensions, in NCHW, with an even number of channels."""
    for each in cases_of_images(name):
        try:
            calls = list(calls_of(name, each))
        except GraphError:  # the operator needs other attributes
            continue
        for _, result in [(d, r) for d, r in calls if d in ("float32", "int32", "bool")][:1]:
            first = result.inputs[0]
            data = first.fields[0] if isinstance(first, TupleType) else first
            layout = result.attrs.get("data_layout", result.attrs.get("layout", IMAGE))
            is_image = isinstance(data, TensorType) and data.rank == 4 and layout == IMAGE
            if is_image and 0 not in data.shape:
                yield result


def stored(value, text, old):
    """Return a value in a layout; a tuple by field; "" leaves it."""
    if isinstance(value, tuple):
        return tuple(stored(part, text, old) for part in value)
    if not text:
        return value
    order = "".join(layout_of(old).dimensions) if old else IMAGE
    plain = value if old == order or not old else layout_of(old).plain(value, order)
    return layout_of(text).store(plain, order)


def current_of(name, result):
    """Return the layouts that the arguments have now."""
    weights = (result.attrs["kernel_layout"],) if "kernel_layout" in result.attrs else ()
    ranks = [kind.rank for kind in result.inputs[1 + len(weights) :]
             if isinstance(kind, TensorType)]  # fmt: skip
    is_broadcast = REGISTRY[name].inputs in (("lhs", "rhs"), ("condition", "x", "y"))
    rest = [IMAGE[4 - rank :] if is_broadcast else "" for rank in ranks]
    return (IMAGE, *weights, *rest)


def has_odd_channels(kind):
    if isinstance(kind, TupleType):
        return any(map(has_odd_channels, kind.fields))
    return kind.shape[1] % 2 == 1


def drawn(kind, generator):
    if isinstance(kind, TupleType):
        return tuple(drawn(field, generator) for field in kind.fields)
    if kind.dtype == "bool":
        return generator.integers(0, 2, kind.shape) > 0
    return whole(kind.shape, generator).astype(kind.dtype)


WITH_RULES = [name for name in CASES if REGISTRY[name].layouts is not None]


WITHOUT_IMAGES = {
    name for name in WITH_RULES if any(f"{rank}d" in name for rank in (1, 3)) or "3d" in name
}
"""Operators on images of other numbers of dimensions, which have the rule of those of two."""


@pytest.mark.parametrize("name", WITH_RULES)
def test_another_layout_gives_the_same_result(name):
    tried = sum(check_layouts(name, *pair) for pair in enumerate(image_calls(name)))
    assert tried or name in WITHOUT_IMAGES


def check_layouts(name, number, result):
    """Compare a call with the same one in other layouts; return how many there are."""
    operator, tried = REGISTRY[name], 0
    values = [drawn(kind, np.random.default_rng(number)) for kind in result.inputs]
    with quiet():
        plain = operator.evaluate(result, *values)
    current = current_of(name, result)
    for wanted in WANTED:
        found = operator.layouts(result, current, wanted)
        if found is None or (wanted == "NCHW2c" and has_odd_channels(result.inputs[0])):
            continue
        tried += 1
        moved = [stored(value, text, old) for value, text, old in zip(
            values, found.inputs, current, strict=True)]  # fmt: skip
        inputs = tuple(type_of_value(value) for value in moved)
        attrs = completed(name, operator.attributes, {**result.attrs, **found.attrs})
        kind = operator.relation(CallTypes(operator, list(inputs), attrs))
        with quiet():
            other = operator.evaluate(Result(attrs, inputs, kind), *moved)
        outputs = plain if isinstance(plain, tuple) else (plain,)
        others = other if isinstance(other, tuple) else (other,)
        for one, two, text in zip(outputs, others, found.outputs, strict=True):
            letters = [axis for axis in IMAGE if not text or axis in layout_of(text).axes]
            expected = stored(one, text, "".join(letters)) if text else one
            # The meanings round once; a sum in another order may be on the other side.
            np.testing.assert_allclose(two, expected, rtol=2 * UNITS["float32"])
    return tried
