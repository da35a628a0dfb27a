"""Cases of elementwise operators and of views."""

from dlcompiler.graph.operators import elementwise
from tests.graph.operators.operator_cases import Given, case

_DOMAINS = {
    "log": (0.1, 9), "log2": (0.1, 9), "log10": (0.1, 9), "log1p": (-0.5, 9), "sqrt": (0.1, 9),
    "rsqrt": (0.1, 9), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "acosh": (1.2, 9),
    "atanh": (-0.9, 0.9), "tan": (-1.2, 1.2),
}  # fmt: skip
_ATTRS = {"clip": {"a_min": -1.0, "a_max": 2.0}, "cast": {"dtype": "int32"},
          "reinterpret": {"dtype": "int32"}}  # fmt: skip
_DIVISORS = {"divide", "floor_divide", "mod", "floor_mod"}
_ROUNDED = {"floor_divide", "mod"}


def _unary(name):
    low, high = _DOMAINS.get(name, (-3, 3))
    attrs = _ATTRS.get(name, {})
    return [case(Given(shape, low=low, high=high), **attrs)
            for shape in ((), (0, 2), (3, 1, 5))]  # fmt: skip


def _binary(name):
    low = 1 if name in _DIVISORS else 0.2 if name == "power" else -3
    if "shift" in name:
        return [case((2, 3), Given((3,), low=0, high=7)), case((), Given((), low=0, high=7))]
    smooth = name not in _ROUNDED
    first = Given((2, 1, 3), low=0.2) if name == "power" else (2, 1, 3)
    return [
        case(first, Given((4, 1), low=low), is_smooth=smooth),
        case(Given((), low=0.2), Given((5,), low=low), is_smooth=smooth),
        case(Given((0, 3), low=0.2), Given((1, 1), low=low), is_smooth=smooth),
    ]


ELEMENTWISE = {
    entry.name: _unary(entry.name) if len(entry.inputs) == 1 else _binary(entry.name)
    for entry in elementwise.TABLE
    if len(entry.inputs) < 3
}
ELEMENTWISE["where"] = [
    case(Given((2, 1), "bool"), (3,), ()), case(Given((), "bool"), (0,), (1,)),
]  # fmt: skip
ELEMENTWISE["clip"] += [
    case((5,), a_min=1.0, a_max=1e39), case((5,), a_min=-float("inf"), a_max=float("inf"))
]  # fmt: skip
ELEMENTWISE["cast"] = [
    case(Given((2, 3), low=0, high=9), dtype=dtype)
    for dtype in ("float32", "float16", "bfloat16", "int8", "uint16", "int64", "bool")
]
ELEMENTWISE["reinterpret"] = [
    case((2, 3), dtype=dtype)
    for dtype in ("float32", "int32", "uint16", "int64", "float64", "uint8", "float16")
]

VIEWS = {
    "reshape": [case((2, 3, 4), newshape=(-1, 4)), case((0, 3), newshape=(3, 0), allowzero=True),
                case((), newshape=(1, 1)), case((5,), newshape=(0,))],
    "reshape_like": [case((2, 3, 4), (6, 4)), case((), (1, 1)), case((0, 2), (5, 0))],
    "nn.batch_flatten": [case((2, 3, 4)), case((3,)), case((0, 5))],
    "expand_dims": [case((2, 3), axis=1), case((), axis=0, num_newaxis=3), case((4,), axis=-1)],
    "squeeze": [case((1, 3, 1)), case((1, 3, 1), axis=(-1,)), case((1,))],
    "transpose": [case((2, 3, 5)), case((2, 3, 5), axes=(1, -1, 0)), case(()), case((0, 4))],
    "concatenate": [case([(2, 3), (2, 0), (2, 4)], axis=1), case([(3,)], axis=-1)],
    "stack": [case([(2, 3), (2, 3)], axis=-1), case([(), ()]), case([(0,)])],
    "split": [case((4, 6), indices_or_sections=3, axis=1), case((5,), indices_or_sections=(1, 1)),
              case((0, 2), indices_or_sections=2, axis=1)],
}  # fmt: skip
