"""Cases of operators that make, cut, index and sort tensors."""

from tests.graph.operators.operator_cases import Given, case

CREATION = {
    "zeros": [case(shape=(2, 3)), case(shape=(), dtype="int8"), case(shape=(0,), dtype="bool")],
    "ones": [case(shape=(2, 3)), case(shape=(), dtype="bfloat16"), case(shape=5, dtype="uint64")],
    "zeros_like": [case((2, 3)), case(()), case((0, 1))],
    "ones_like": [case((2, 3)), case(()), case((0, 1))],
    "full": [case((), shape=(2, 3)), case((), shape=()), case((), shape=(0, 4), dtype="float16"),
             case(Given((), low=0, high=9), shape=(3,), dtype="int32")],
    "full_like": [case((2, 3), ()), case((), ()), case((0,), ())],
    "arange": [case(start=5), case(start=2, stop=9, step=3, dtype="int64"),
               case(start=1.0, stop=0.0, step=-0.25), case(start=3, stop=3, dtype="int8"),
               case(start=0, stop=300, step=100, dtype="uint8"),
               case(start=-1.5, stop=4, step=0.7, dtype="float16")],
    "shape_of": [case((2, 0, 5)), case(()), case((3,), dtype="int64")],
    "ndarray_size": [case((2, 3, 5)), case(()), case((0,), dtype="int64")],
    "one_hot": [
        case(Given((2, 3), "int32", -1, 6), (), (), depth=5),
        case(Given((), "int64", 0, 4), (), (), depth=4, axis=0),
        case(Given((3,), "uint8", 0, 9), Given((), "float32"), Given((), "float32"), depth=7,
             axis=0, dtype="int8"),
    ],
    "trilu": [case((3, 4)), case((2, 4, 3), Given((), "int64", 1, 2), upper=False),
              case((3, 3), Given((), "int32", -2, -1)), case((0, 2))],
    "meshgrid": [case([(2,), (3,), ()]), case([(2,), (3,)], indexing="xy"), case([(4,)]),
                 case([(0,), (3,), (2,)], indexing="xy")],
}  # fmt: skip

SLICING = {
    "strided_slice": [
        case((5, 7), begin=(1, -3), end=(4, 100)), case((6,), begin=5, end=-7, strides=-2),
        case((4, 3), begin=(0,), end=(2,), axes=(-1,)),
        case((5, 6), begin=(1, 2), end=(-1, 3), slice_mode="size"),
        case((3,), begin=2, end=1), case((0, 4), begin=(0, 1), end=(5, 2)),
        case((5, 4), begin=(-7, 1), end=(3, -1), slice_mode="size"),
        case((5,), begin=0, end=5, strides=2**62),
    ],
    "slice_like": [case((4, 5), (2, 3)), case((4, 5), (2, 9), axes=(0,)), case((3,), (0,))],
    "broadcast_to": [case((3, 1), shape=(2, 3, 4)), case((), shape=(2,)), case((1,), shape=(0,))],
    "broadcast_to_like": [case((3, 1), (2, 3, 4)), case((), ()), case((1, 2), (0, 2))],
    "tile": [case((2, 3), reps=(2,)), case((2, 3), reps=(3, 1, 2)), case((), reps=(2, 2)),
             case((2,), reps=(0,)), case((4,), reps=())],
    "repeat": [case((2, 3), repeats=2, axis=-1), case((2, 3), repeats=3, axis=0),
               case((4,), repeats=0, axis=0)],
    "reverse": [case((2, 3), axis=1), case((5,), axis=-1), case((0, 2), axis=0)],
    "reverse_sequence": [
        case((3, 5), Given((3,), "int32", 0, 6)),
        case((4, 2, 3), Given((3,), "int64", -1, 9), seq_axis=0, batch_axis=-1),
    ],
    "sequence_mask": [case((5, 3), Given((3,), "int32", 0, 6), mask_value=7.0),
                      case((2, 4, 3), Given((2,), "int64", -1, 5), axis=1),
                      *(case((3, 2), Given((2,), "int8", 0, 2), mask_value=value)
                        for value in (-1.0, 300.0, 1e30))],
}  # fmt: skip

_AT = "int32"

INDEXING = {
    "take": [
        case((5, 3), Given((2, 2), _AT, -2, 9), axis=0),
        case((2, 5), Given((3,), "int64", -9, 9), axis=1, mode="wrap"),
        case((3, 4), Given((), "uint8", 0, 20)), case((4,), Given((0, 2), _AT), axis=-1),
        case((2, 3, 5), Given((2, 3, 4), _AT, 0, 5), axis=2, batch_dims=2, mode="fast"),
        case((2, 3, 5), Given((2, 4), _AT, 0, 3), axis=1, batch_dims=1),
        case((3, 2), Given((3,), _AT, 0, 2), axis=1, batch_dims=-0),
        case((3, 2), Given((3,), _AT, 0, 2), axis=1, batch_dims=1),
    ],
    "gather": [case((5, 3), Given((2, 3), _AT, -5, 5), axis=0),
               case((2, 4), Given((1, 7), "int64", -4, 4), axis=-1),
               case((3,), Given((0,), _AT), axis=0)],
    "gather_nd": [
        case((3, 4, 2), Given((2, 5), _AT, -3, 3)), case((3, 4), Given((1, 2, 2), _AT, 0, 3)),
        case((2, 3, 4), Given((1, 2, 5), _AT, -3, 3), batch_dims=1),
        case((2, 3), Given((0, 2, 4), _AT), batch_dims=1),
        case((3, 2), Given((0, 4), _AT)), case((2, 2), Given((2,), _AT, 0, 2), index_rank=2),
    ],
    "adv_index": [
        case([(4, 5, 2), Given((3, 1), _AT, -4, 4), Given((2,), "int64", -5, 5)]),
        case([(3,), Given((), _AT, 0, 3)]), case([(3, 2), Given((0,), _AT)]),
    ],
    "scatter_elements": [
        case((4, 3), Given((2, 3), _AT, -4, 4), (2, 3)),
        *(case((3, 4), Given((2, 5), "int64", -4, 4), (2, 5), axis=1, reduction=mode)
          for mode in ("update", "add", "mul", "min", "max")),
        case((3,), Given((0,), _AT), (0,), reduction="add"),
    ],
    "scatter_nd": [
        *(case((4, 3), Given((1, 5), _AT, -4, 4), (5, 3), mode=mode)
          for mode in ("update", "add", "mul", "min", "max")),
        case((3, 4), Given((2, 2, 2), "int64", -3, 3), (2, 2)),
        case((3, 2), Given((1, 0), _AT), (0, 2)), case((2, 2), Given((2,), _AT, 0, 2), ()),
    ],
}  # fmt: skip

SORTING = {
    "cumsum": [case((2, 5), axis=1), case((3, 2), axis=0, exclusive=True), case((2, 3)),
               case((1, 4), axis=0), case((0, 2), axis=0), case((3, 0), axis=0),
               case((2, 3), axis=1, exclusive=True), case((3, 2), exclusive=True),
               case((2, 1, 3), axis=-1, dtype="int64", is_smooth=False)],
    "cumprod": [case((2, 5), axis=1), case((3, 2), axis=0, exclusive=True), case(()),
                case((1, 4), axis=0, exclusive=True), case((0,), axis=0)],
    "sort": [case((2, 7)), case((5, 2), axis=0, is_ascend=False), case((1,)), case((0, 3))],
    "argsort": [case((2, 7)), case((5, 2), axis=0, is_ascend=False, dtype="int64"), case((1,))],
    "topk": [case((2, 7), k=3), case((5, 2), k=2, axis=0, is_ascend=True, ret_type="values"),
             case((2, 3), k=0, ret_type="indices", dtype="int64"), case((4,))],
    "searchsorted": [case((5,), (2, 3)), case((2, 4), (2, 3), right=True, dtype="int64"),
                     case((0,), (3,))],
}  # fmt: skip
