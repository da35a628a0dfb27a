"""Cases of operators on images: products, convolutions, pooling, normalisations."""

from tests.graph.operators.operator_cases import Given, case

_SPATIAL = {1: (9,), 2: (6, 7), 3: (4, 5, 3)}
_LETTERS = {1: "W", 2: "HW", 3: "DHW"}


def _windows(rank):
    """Return strides, padding and dilation that differ in each dimension."""
    return {
        "strides": (2, 1, 1)[:rank], "padding": ((1, 0, 1)[:rank] + (0, 1, 1)[:rank]),
        "dilation": (1, 2, 1)[:rank],
    }  # fmt: skip


def _convolutions(rank):
    spatial, letters = _SPATIAL[rank], _LETTERS[rank]
    kernel = (3, 2, 2)[:rank]
    last = {"data_layout": f"N{letters}C", "kernel_layout": f"{letters}IO"}
    return [
        case((1, 3, *spatial), (2, 3, *kernel)),
        case((2, 4, *spatial), (6, 2, *kernel), groups=2, **_windows(rank)),
        case((1, *spatial, 3), (*kernel, 3, 2), **last),
        case((1, 3, *spatial), (3, 1, *(1,) * rank), groups=3, kernel_size=1, channels=3),
        case((0, 1, *spatial), (2, 1, *kernel)),
        case((1, 2, *spatial, 2), (3, 2, *kernel, 2, 4), padding=1,
             data_layout=f"NC{letters}2c", kernel_layout=f"OI{letters}2i4o",
             out_layout=f"NC{letters}"),
        case(Given((1, 2, *spatial), "int8"), Given((2, 2, *kernel), "int8"), out_dtype="int32"),
        case((1, 0, *spatial), (2, 0, *kernel)),
    ]  # fmt: skip


def _transposed(rank):
    spatial = (3, 4, 2)[:rank]
    kernel = (3, 2, 2)[:rank]
    letters = _LETTERS[rank]
    return [
        case((1, 3, *spatial), (3, 2, *kernel)),
        case((2, 4, *spatial), (4, 3, *kernel), groups=2, strides=2, padding=1,
             output_padding=1),
        case((1, *spatial, 2), (*kernel, 2, 3), strides=(3, 1, 2)[:rank], dilation=2,
             data_layout=f"N{letters}C", kernel_layout=f"{letters}IO"),
        case(Given((1, 2, *spatial), "int8"), Given((2, 1, *kernel), "int8"), out_dtype="int32"),
    ]  # fmt: skip


def _pools(rank, kind):
    spatial, letters = _SPATIAL[rank], _LETTERS[rank]
    found = [
        case((1, 2, *spatial), pool_size=2),
        case((2, 1, *spatial), pool_size=(3, 2, 2)[:rank], **_windows(rank), ceil_mode=True),
        case((1, *spatial, 3), pool_size=3, padding=1, layout=f"N{letters}C"),
        case((0, 2, *spatial), pool_size=1),
        case((1, 1, *spatial, 4), pool_size=2, strides=2, layout=f"NC{letters}4c"),
    ]
    if kind == "avg":
        found += [
            case((1, 2, *spatial), pool_size=3, padding=1, strides=2, count_include_pad=True,
                 ceil_mode=ceil)
            for ceil in (False, True)
        ]  # fmt: skip
    if kind == "lp":
        found = [case(Given(c.inputs[0], low=0.5), **c.attrs) for c in found]
        found.append(case(Given((1, 2, *spatial), low=0.5), pool_size=3, p=3.0))
    return found


def _pools_to(rank):
    spatial, letters = _SPATIAL[rank], _LETTERS[rank]
    return [
        case((1, 2, *spatial), output_size=(3, 5, 2)[:rank]),
        case((2, *spatial, 1), output_size=1, layout=f"N{letters}C"),
        case((0, 2, *spatial)),
        case((1, 2, *spatial[:-1], 0)),
    ]


def _global_pools(rank):
    spatial, letters = _SPATIAL[rank], _LETTERS[rank]
    return [case((2, 3, *spatial)), case((1, *spatial, 3), layout=f"N{letters}C"),
            case((0, 2, *(1,) * rank))]  # fmt: skip


PRODUCTS = {
    "nn.dense": [
        case((3, 5), (4, 5)), case((5,), (4, 5)), case((2, 1, 3), (2, 3)), case((0, 3), (2, 3)),
        case((2, 0), (3, 0), units=3),
        case(Given((2, 9), "int8"), Given((3, 9), "int8"), out_dtype="int32"),
        case(Given((2, 9), "uint8"), Given((3, 9), "int8"), out_dtype="int32"),
    ],
    "nn.matmul": [
        case((3, 5), (5, 4)), case((5, 3), (5, 4), transpose_a=True),
        case((3, 5), (4, 5), transpose_b=True), case((2, 1, 3, 5), (4, 5, 2)),
        case((1, 3, 2), (5, 4, 3), transpose_a=True, transpose_b=True), case((0, 2), (2, 3)),
    ],
    "nn.batch_matmul": [
        case((2, 3, 5), (2, 4, 5)), case((1, 3, 5), (4, 5, 2), transpose_b=False),
        case((3, 2, 1), (3, 2, 4), transpose_a=True, transpose_b=False), case((0, 1, 2), (0, 3, 2)),
    ],
}  # fmt: skip

CONVOLUTIONS = {f"nn.conv{rank}d": _convolutions(rank) for rank in (1, 2, 3)}
CONVOLUTIONS |= {f"nn.conv{rank}d_transpose": _transposed(rank) for rank in (1, 2, 3)}

POOLING = {
    f"nn.{kind}_pool{rank}d": _pools(rank, kind)
    for kind in ("max", "avg", "lp")
    for rank in (1, 2, 3)
}
for _kind in ("max", "avg"):
    for _rank in (1, 2, 3):
        POOLING[f"nn.adaptive_{_kind}_pool{_rank}d"] = _pools_to(_rank)
        POOLING[f"nn.global_{_kind}_pool{_rank}d"] = _global_pools(_rank)

_ONE = Given((3,), low=0.5, high=2)


def _affine(**attrs):
    return [
        case((2, 3, 4), (3,), (3,), axis=1, **attrs),
        case((2, 4, 3), (3,), (3,), axis=-1, epsilon=0.1, scale=False, **attrs),
        case((2, 3, 4, 5), (3,), (3,), axis=1, center=False, **attrs),
        case((2, 3, 2), (3,), (3,), axis=1, center=False, scale=False, **attrs),
    ]


NORMS = {
    "nn.bias_add": [case((2, 3, 4), (3,)), case((3,), (3,), axis=0), case((0, 5), (5,), axis=-1)],
    "nn.prelu": [case((2, 3, 4), (3,)), case((1, 4, 3), (3,), axis=-1), case((0, 2), (2,))],
    "nn.batch_norm": [
        case((2, 3, 4), (3,), (3,), (3,), _ONE), case((2, 3), (3,), (3,), (3,), _ONE, axis=-1),
        case((1, 3, 2, 2), (3,), (3,), (3,), _ONE, scale=False, epsilon=0.01),
        case((2, 3), (3,), (3,), (3,), _ONE, center=False), case((0, 3), (3,), (3,), (3,), _ONE),
    ],
    "nn.layer_norm": [*_affine(), case((3,), (3,), (3,), epsilon=0.1),
                      case((2, 5), (5,), (5,), axis=-1)],
    "nn.instance_norm": _affine(),
    "nn.group_norm": [*_affine(num_groups=3), case((2, 6, 3), (6,), (6,), num_groups=2),
                      case((1, 2, 2, 6), (6,), (6,), num_groups=3, axis=-1)],
    "nn.rms_norm": [case((2, 5), (5,)), case((3, 2), (3,), axis=0, epsilon=0.1)],
    "nn.l2_normalize": [case((2, 3)), case((2, 3, 4), axis=(1,)), case((5,), eps=100.0)],
    "nn.lrn": [case((2, 7, 3)), case((2, 3), size=2, alpha=0.5), case((3, 5), axis=0, size=9)],
    "nn.softmax": [case((2, 5)), case((2, 3, 4), axis=1), case((1,)), case((0, 3)), case((2, 0))],
    "nn.log_softmax": [case((2, 5)), case((2, 3, 4), axis=0), case((1,)), case((0, 3))],
    "nn.dropout": [case((2, 3)), case(()), case((0,), rate=0.1)],
    "nn.pad": [
        case((2, 3), pad_width=((0, 0), (1, 2))), case((), pad_width=()),
        case((2, 3), Given(()), pad_width=((1, 0), (0, 3))),
        case((0, 2), pad_width=((2, 1), (0, 0))),
        *(case((4, 3), pad_width=((3, 1), (0, 2)), pad_mode=mode)
          for mode in ("edge", "reflect", "symmetric", "wrap")),
    ],
    "nn.mirror_pad": [case((2, 3), pad_width=((2, 1), (3, 0))),
                      case((2, 3), pad_width=((1, 1), (0, 2)), mode="REFLECT")],
}  # fmt: skip

_SETS = ((2, 3, 4), {}), ((2, 3, 4), {"axis": (0, 2)}), ((5,), {"keepdims": True}), ((), {}), (
    (2, 3, 4), {"axis": (1,), "exclude": True, "keepdims": True}), (
    (0, 3), {"axis": (0,)}), ((2, 3), {"axis": ()}), ((2, 1, 3), {"axis": (-1,)})  # fmt: skip


def _reductions(count=99, **more):
    return [case(shape, **attrs, **more) for shape, attrs in _SETS[:count]]


def _positions():
    """No element is at a position of an empty dimension."""
    full = [found for found in _reductions() if 0 not in found.inputs[0]]
    return [*full, case((0, 3), axis=(1,)), *_reductions(4, select_last_index=True)]


REDUCTIONS = {
    **{name: _reductions() for name in ("sum", "mean", "max", "min", "prod", "all", "any")},
    "argmax": _positions(),
    "argmin": _positions(),
    "logsumexp": _reductions(),
    "norm": [
        case(Given(shape, low=0.5), **attrs, ord=order)
        for order in (1.0, 2.0, 3.0, float("inf"))
        for shape, attrs in _SETS[:5]
    ],
    "variance": [
        case((2, 3, 4), (1, 1, 1)), case((2, 3, 4), (2, 1, 1), axis=(1, 2), unbiased=True),
        case((2, 3), (1, 3), axis=(1,), exclude=True, keepdims=True),
    ],
}  # fmt: skip
