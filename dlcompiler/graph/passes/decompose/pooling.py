"""Pooling along rows, and pooling to given extents, by pooling of images."""

from __future__ import annotations

from dlcompiler.graph.ir import Call
from dlcompiler.graph.passes.decompose.convolutions import as_images, flat_attrs
from dlcompiler.graph.passes.decompose.rules import Rule, Written
from dlcompiler.graph.passes.tools import KnownTypes, attrs_of, call_like, operator_of, shape_of


def pool1d(call: Call, types: KnownTypes) -> Written | None:
    """Write pooling along rows as pooling of images of height 1."""
    del types
    attrs = attrs_of(call)
    layout = attrs["layout"]
    if not layout.isalpha() or attrs["out_layout"] not in ("", layout):
        return None
    name = operator_of(call).replace("1d", "2d")
    image = as_images(call, call.args[0], layout, "image")
    made = call_like(call, name, image, suffix="pool", **flat_attrs(attrs))
    return Written(
        "rows are images of height 1",
        call_like(call, "squeeze", made, axis=(layout.index("W"),)),
    )


def adaptive_pool(call: Call, types: KnownTypes) -> Written | None:
    """Write pooling to extents that divide those of the images as pooling with equal windows."""
    attrs, shape = attrs_of(call), shape_of(call.args[0], types)
    layout, wanted = attrs["layout"], attrs["output_size"]
    if shape is None or wanted is None or not layout.isalpha():
        return None
    if attrs["out_layout"] not in ("", layout):
        return None
    letters = [letter for letter in "DHW" if letter in layout]
    sizes = [shape[layout.index(letter)] for letter in letters]
    kind, rank = operator_of(call).split("_")[1], f"{len(letters)}d"
    if all(out == 1 for out in wanted):
        whole = call_like(call, f"nn.global_{kind}_pool{rank}", call.args[0], layout=layout)
        return Written("one window covers each image", whole)
    if any(size % out for size, out in zip(sizes, wanted, strict=True)):
        return None
    windows = tuple(size // out for size, out in zip(sizes, wanted, strict=True))
    made = call_like(call, f"nn.{kind}_pool{rank}", call.args[0], pool_size=windows,
                     strides=windows, layout=layout)  # fmt: skip
    found = pool1d(made, types) if rank == "1d" else None
    return found or Written("all windows are equal", made)


RULES: dict[str, Rule] = {
    **{f"nn.{kind}_pool1d": pool1d for kind in ("max", "avg")},
    **{f"nn.adaptive_{kind}_pool{n}d": adaptive_pool for kind in ("max", "avg") for n in (1, 2, 3)},
}
"""Operator -> the rule for its calls."""
