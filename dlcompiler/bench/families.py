"""Families of works: how their sizes and options are written, and which operator computes them.

`GRAMMAR` is the table of all families. A new operator needs one entry: `parse_work` reads it, the
operator's own workload checks the sizes and options, and its definition gives the shapes and dtypes
of the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from dlcompiler.ops import functions, pool2d, reduction
from dlcompiler.ops.attention_workload import shapes_of
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.layouts import Layout
from dlcompiler.ops.epilogues import Epilogue
from dlcompiler.ops.gemm.product import Product
from dlcompiler.ops.recurrent import GATES
from dlcompiler.ops.recurrent_workload import Layer
from dlcompiler.ops.shapes import shape_of
from dlcompiler.space import Workload

Row: TypeAlias = Literal["plain", "prepacked"]
Value: TypeAlias = int | str | tuple[int, ...] | tuple[tuple[int, ...], ...]
Shape: TypeAlias = tuple[int, ...]
Values: TypeAlias = Mapping[str, Any]
"""Sizes and options by name."""

LENGTHS = {
    **dict.fromkeys(("kernel", "stride"), (1, 2)),
    "padding": (1, 2, 4),
    **dict.fromkeys(("outputs", "sections", "repeats", "depth", "block", "groups"), (1,)),
}
"""How many numbers, joined by ``x``, a part of the sizes may have; other parts have any number."""
REPEATED = "shapes"
"""Name of a part that takes all shapes that are given."""
DEFAULT = "default"
"""Value of an option whose default depends on the function."""


@dataclass(frozen=True, slots=True)
class Family:
    """Works that differ in their sizes and options only."""

    operator: str
    """Name of the operator, or ``"conv2d"``: see `dlcompiler.ops.select`."""
    form: str
    """The sizes as a user writes them: parts that are separated by commas."""
    parts: tuple[str | tuple[str, ...], ...]
    """For each part of `form` the names of its numbers, or one name of all its numbers."""
    options: Mapping[str, int | str] = field(default_factory=dict)
    """Options, which follow the sizes as ``name=value``, with their defaults."""
    functions: tuple[str, ...] = ()
    """Names of functions that may precede the sizes."""
    parameters: Callable[[str, Values], dict[str, Any]] = lambda function, values: {
        **({"function": function} if function else {}),
        **values,
    }
    """Returns the operator's parameters for the name of a function, and sizes and options."""
    checked_by: str = ""
    """The operator that checks the parameters, if it is not `operator`."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Name of the operator's parameter -> its role in a work, where they differ."""
    shapes: Callable[[Workload], dict[str, Shape]] | None = None
    """Returns the shapes of the arrays by role, ``out`` last, as callers have them; None: those of
    the operator's definition, which takes longer."""
    terms: Callable[[Workload], int] = lambda workload: 0
    """Returns the number of products that are summed for an element of the result."""
    fuses: bool = False
    """Whether steps of an epilogue can be fused behind it."""
    has_weights: bool = False
    """Whether an operand is known before the call, and may be packed ahead."""
    judged: Row = "plain"
    """The row that goals are judged by."""
    is_always_packed: bool = False
    """Whether weights must be packed ahead, so that there is no plain row."""
    has_peers: bool = True
    """Whether other libraries compute it."""
    reads_part: bool = False
    """Whether only as many elements of ``data`` are read as the result has."""
    bound_by: Literal["compute", "memory"] = "compute"
    """What limits a good implementation."""


_SHORT = {"batch": "n", "channels": "c", "height": "h", "width": "w", "outputs": "o"}
"""Names of the sizes of images -> those of the operators' parameters."""


def _of_images(function: str, values: Values) -> dict[str, Any]:
    kind = {"kind": function} if function else {}
    return {**kind, **{_SHORT.get(name, name): value for name, value in values.items()}}


_OF_FUNCTIONS = ("alpha", "beta", "low", "high", "to")
"""Options that some elementwise functions have."""


def _of_shapes(function: str, values: Values) -> dict[str, Any]:
    """Repeat a single shape for each operand of the function; gather the function's options."""
    given = values[REPEATED]
    arity = functions.FUNCTIONS[function].arity
    return {
        "function": function,
        REPEATED: given * arity if len(given) == 1 else given,
        "dtype": values["dtype"],
        "options": {n: values[n] for n in _OF_FUNCTIONS if values[n] != DEFAULT},
    }


def _of_slices(function: str, values: Values) -> dict[str, Any]:
    """Use a single stride for all dimensions."""
    strides = values["strides"]
    every = (strides,) * len(values["shape"]) if isinstance(strides, int) else strides
    return {**values, "strides": every}


def _of_resizing(function: str, values: Values) -> dict[str, Any]:
    given = {name: value for name, value in values.items() if value != DEFAULT}
    options = {"alpha": given.pop("alpha")} if "alpha" in given else {}
    return {**given, "options": options}


def _of_attention(function: str, values: Values) -> dict[str, Any]:
    given = {name: value for name, value in values.items() if value not in (DEFAULT, "none")}
    return {**given, "heads": values["heads"]}


def _terms_of_attention(workload: Workload) -> int:
    """Return the products for an element of the result; a row shares those of its scores."""
    length, depth, width = (int(workload[name]) for name in ("length", "depth", "width"))
    return length * (depth + width) // width


def _of_layers(function: str, values: Values) -> dict[str, Any]:
    """Ask for the outputs of all steps only: one result, as other families have."""
    return {**values, "last": 0}


def _layer_shapes(workload: Workload) -> dict[str, Shape]:
    found = Layer.of(workload).shapes
    return {**{role: shape for role, shape in found.items() if role != "outputs"},
            "out": found["outputs"]}  # fmt: skip


def _recurrent(operator: str, **options: int | str) -> Family:
    return Family(
        operator, "TxBxIxH", (("steps", "batch", "inputs", "hidden"),),
        {"biases": 2, **options, "dtype": "float32"}, parameters=_of_layers, shapes=_layer_shapes,
        terms=lambda workload: GATES[operator] * int(workload["inputs"] + workload["hidden"]),
        has_weights=True, judged="prepacked",
    )  # fmt: skip


def _of_products(workload: Workload) -> dict[str, Shape]:
    product = Product.of(workload)
    a, b, out = product.shapes.values()
    second = "other" if product.batch else "weight"
    return {"data": a, second: b, **product.epilogue.operands(out), "out": out}


def _of_convolutions(workload: Workload) -> dict[str, Shape]:
    shape, layout = shapes.shape_of(workload), Layout(str(workload["layout"]))
    operands = Epilogue.read(shape.epilogue, channel=1).operands(shape.result)
    if "residual" in operands:
        operands["residual"] = layout.shape(shape.result)
    image, out = layout.shape(shape.image), layout.shape(shape.result)
    return {"data": image, "weight": shape.weight, **operands, "out": out}


def _of_bit_images(workload: Workload) -> dict[str, Shape]:
    shape, layout = shapes.shape_of(workload), Layout(str(workload["layout"]))
    image, out = layout.shape(shape.image), layout.shape(shape.result)
    return {"data": image, "weight": shape.weight, "out": out}


def _of_bit_rows(workload: Workload) -> dict[str, Shape]:
    m, n, k = (int(workload[name]) for name in "mnk")
    return {"data": (m, k), "weight": (n, k), "out": (m, n)}


def _along_rows(*operands: str) -> Callable[[Workload], dict[str, Shape]]:
    """Return the shapes of functions of rows, with operands of the length of a row."""

    def of(workload: Workload) -> dict[str, Shape]:
        shape = shape_of(str(workload["shape"]))
        return {"data": shape, **dict.fromkeys(operands, shape[-1:]), "out": shape}

    return of


def _by_channel(workload: Workload) -> dict[str, Shape]:
    """Return the shapes of functions with a scale and a shift for each channel."""
    shape = shape_of(str(workload["shape"]))
    return {"data": shape, "scale": shape[1:2], "shift": shape[1:2], "out": shape}


def _product(operator: str, form: str, parts: tuple[str, ...], **more: Any) -> Family:
    return Family(
        operator,
        form,
        (parts,),
        roles={"A": "data", "B": more.pop("second", "weight")},
        terms=lambda workload: int(workload["k"]),
        shapes=_of_products,
        fuses=True,
        **more,
    )


def _convolution(operator: str, form: str, *parts: str, **more: Any) -> Family:
    return Family(
        operator,
        f"NxCxHxW,{form}",
        (_IMAGE, *parts),
        parameters=_of_images,
        shapes=_of_convolutions,
        terms=lambda workload: shapes.shape_of(workload).terms,
        fuses=True,
        has_weights=True,
        judged="prepacked",
        **more,
    )


def _memory(operator: str, options: Mapping[str, int | str], **more: Any) -> Family:
    """Return a family of one tensor that is limited by memory."""
    form, parts = more.pop("form", "shape"), more.pop("parts", ("shape",))
    return Family(operator, form, parts, {**options, "dtype": "float32"}, bound_by="memory", **more)


def _movement(operator: str, *parts: str, **options: Any) -> Family:
    """Return a family that moves elements of a tensor: its shape, other sizes, options."""
    more = {n: options.pop(n) for n in ("parameters", "reads_part") if n in options}
    form = ",".join(("shape", *parts))
    return _memory(operator, options, form=form, parts=("shape", *parts), **more)


_MATRIX, _IMAGE = ("m", "n", "k"), ("batch", "channels", "height", "width")
_WINDOW = ("kernel", "stride", "padding")
_FORM = "kernel,stride,padding"
_FLOAT = {"dtype": "float32"}
_BITS: Mapping[str, int | str] = {"data_bits": 1, "weight_bits": 1, "weights": "unipolar"}
_OF_BITS: Mapping[str, Any] = {
    "has_weights": True, "judged": "prepacked", "is_always_packed": True, "has_peers": False,
}  # fmt: skip

GRAMMAR: dict[str, Family] = {
    "gemm": _product("matmul", "MxNxK", _MATRIX, options={**_FLOAT, "layout": "NN"},
                     has_weights=True),
    "dense": _product("dense", "MxNxK", _MATRIX, options=_FLOAT, has_weights=True),
    "batch_matmul": _product("batch_matmul", "BxMxNxK", ("batch", *_MATRIX), second="other",
                             options={**_FLOAT, "layout": "NN"}),
    "conv2d": _convolution(
        "conv2d", f"output channels,{_FORM}", "outputs", *_WINDOW,
        options={"groups": 1, "dilation": 1, **_FLOAT, "layout": "NCHW"},
        checked_by="conv2d_direct",
    ),
    "depthwise": _convolution(
        "depthwise_conv2d", _FORM, *_WINDOW,
        options={"multiplier": 1, "dilation": 1, **_FLOAT, "layout": "NCHW"},
    ),
    "bitserial_dense": Family(
        "bitserial_dense", "MxNxK", (_MATRIX,), _BITS, shapes=_of_bit_rows,
        terms=lambda workload: int(workload["k"]), **_OF_BITS,
    ),
    "bitserial_conv2d": Family(
        "bitserial_conv2d", f"NxCxHxW,output channels,{_FORM}", (_IMAGE, "outputs", *_WINDOW),
        {"dilation": 1, "layout": "NCHW", **_BITS}, parameters=_of_images, shapes=_of_bit_images,
        terms=lambda workload: shapes.shape_of(workload).terms, **_OF_BITS,
    ),
    "pool2d": _memory(
        "pool2d",
        {"dilation": 1, "ceil_mode": 0, "count_include_pad": 1, "layout": "NCHW"},
        form=f"NxCxHxW,{_FORM}", parts=(_IMAGE, *_WINDOW), functions=pool2d.KINDS,
        parameters=_of_images,
    ),
    "softmax": _memory("softmax", {"axis": -1}, shapes=_along_rows()),
    "log_softmax": _memory("log_softmax", {"axis": -1}, shapes=_along_rows()),
    "layer_norm": _memory("layer_norm", {}, shapes=_along_rows("scale", "shift")),
    "rms_norm": _memory("rms_norm", {}, shapes=_along_rows("scale")),
    "group_norm": _memory("group_norm", {}, form="shape,groups", parts=("shape", "groups"),
                          shapes=_by_channel),
    "instance_norm": _memory("instance_norm", {}, shapes=_by_channel),
    "batch_norm": _memory("batch_norm", {"axis": 1}),
    "attention": Family(
        "attention", "BxHxLxSxE", (("batch", "heads", "rows", "length", "depth"),),
        {"causal": 0, "mask": "none", "width": DEFAULT, "kv_heads": DEFAULT, "dtype": "float32"},
        parameters=_of_attention, shapes=shapes_of,
        terms=_terms_of_attention,
    ),
    "lstm": _recurrent("lstm"),
    "gru": _recurrent("gru", reset_after=1),
    "rnn": _recurrent("rnn", activation="tanh"),
    "elementwise": _memory(
        "elementwise", dict.fromkeys(_OF_FUNCTIONS, DEFAULT), form="shape[,shape…]",
        parts=(REPEATED,), parameters=_of_shapes, functions=tuple(functions.FUNCTIONS),
    ),
    "reduction": _memory(
        "reduction", {"axes": -1, "keepdims": 0}, functions=tuple(reduction.FUNCTIONS)
    ),
    "transpose": _memory("transpose", {"axes": "reversed"}),
    "pad": _memory("pad", {"mode": "constant"}, form="shape,before,after",
                   parts=("shape", "before", "after")),
    "concatenate": _memory("concatenate", {"axis": 0}, form="shape,shape…", parts=(REPEATED,)),
    "strided_slice": _movement("strided_slice", "begin", "size", strides=1,
                               parameters=_of_slices, reads_part=True),
    "split": _movement("split", "sections", axis=0),
    "cumsum": _memory("cumsum", {"axis": -1}, shapes=_along_rows()),
    "flip": _movement("flip", axis=0),
    "tile": _movement("tile", "reps"),
    "repeat": _movement("repeat", "repeats", axis=0),
    "reshape": _movement("reshape", "to"),
    "take": _movement("take", "indices", axis=0, index_dtype="int32", reads_part=True),
    "gather": _movement("gather", "indices", axis=0, index_dtype="int32", reads_part=True),
    "embedding": _memory("embedding", {"index_dtype": "int32"}, form="RxW,indices",
                         parts=(("rows", "width"), "indices"), reads_part=True),
    "one_hot": _memory("one_hot", {"axis": -1, "index_dtype": "int32"}, form="indices,depth",
                       parts=("indices", "depth")),
    "depth_to_space": _movement("depth_to_space", "block", mode="DCR", layout="NCHW"),
    "space_to_depth": _movement("space_to_depth", "block", layout="NCHW"),
    "resize2d": _movement("resize2d", "to", method="linear", mode="half_pixel", rounding=DEFAULT,
                          layout="NCHW", alpha=DEFAULT, parameters=_of_resizing),
}  # fmt: skip
"""Family -> its grammar. ``gemm`` is A(M, K)·B(K, N), ``dense`` has its weights as (N, K); a single
shape of ``elementwise`` is that of all operands."""
