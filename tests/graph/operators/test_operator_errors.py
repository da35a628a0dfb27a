"""Refusals of type relations: the text names the operator, the argument, and the types."""

import numpy as np
import pytest

from dlcompiler import graph, te
from dlcompiler.errors import GraphError, ProgramError
from dlcompiler.graph import op
from dlcompiler.graph.ir import free_vars
from dlcompiler.ops import indexing, losses, transforms
from tests.graph.operators.definitions import read_by


def t(*shape, dtype="float32", name="x"):
    return graph.var(name, shape, dtype)


IMAGE = t(1, 4, 8, 8, name="image")
INDEX = t(3, dtype="int32", name="index")
ROW = t(4, name="row")

REFUSALS = {
    "dense: inner": (
        lambda: op.nn.dense(t(2, 3), t(4, 5)),
        "nn.dense: data has 3 elements in a sum, weight has 5",
        "data Tensor[(2, 3), float32], weight Tensor[(4, 5), float32]",
    ),
    "dense: units": (lambda: op.nn.dense(t(2, 3), t(4, 3), units=5), "units is 5", "has 4"),
    "dense: dtypes": (lambda: op.nn.dense(t(2, 3), t(4, 3, dtype="int8")), "the dtypes differ"),
    "dense: rank": (lambda: op.nn.dense(t(2, 3), t(4)), "argument weight is not a matrix"),
    "dense: scalar": (lambda: op.nn.dense(t(), t(4, 3)), "argument data has no dimensions"),
    "dense: bool": (lambda: op.nn.dense(t(2, 3, dtype="bool"), t(4, 3, dtype="bool")),
                    "takes numbers, not bool"),
    "matmul: batches": (lambda: op.nn.matmul(t(2, 3, 4), t(3, 4, 5)), "cannot be broadcast"),
    "matmul: vector": (lambda: op.nn.matmul(t(3), t(3, 4)), "argument tensor_a is not a matrix"),
    "batch_matmul: rank": (lambda: op.nn.batch_matmul(t(2, 3), t(1, 4, 3)),
                           "argument tensor_a is not a stack of matrices"),
    "conv2d: channels": (
        lambda: op.nn.conv2d(IMAGE, t(6, 3, 3, 3)),
        "nn.conv2d: the data has 4 channels, the weight is for 3",
        "data Tensor[(1, 4, 8, 8), float32], weight Tensor[(6, 3, 3, 3), float32]",
    ),
    "conv2d: named channels": (lambda: op.nn.conv2d(IMAGE, t(6, 4, 3, 3), channels=5),
                               "channels is 5, the weight has 6"),
    "conv2d: kernel": (lambda: op.nn.conv2d(IMAGE, t(6, 4, 3, 3), kernel_size=5),
                       "kernel_size H is 5, the weight has 3"),
    "conv2d: groups": (lambda: op.nn.conv2d(IMAGE, t(6, 1, 3, 3), groups=3, channels=6),
                       "the data has 4 channels, the weight is for 3", "3 groups"),
    "conv2d: groups of channels": (
        lambda: op.nn.conv2d(IMAGE, graph.var("w"), groups=3, channels=6, kernel_size=3),
        "3 groups do not divide 4 channels"),
    "conv2d: large kernel": (lambda: op.nn.conv2d(IMAGE, t(6, 4, 9, 1)),
                             "a window reaches over 9 elements of dimension H, which has 8"),
    "conv2d: layout": (lambda: op.nn.conv2d(IMAGE, t(6, 4, 3, 3), data_layout="NCW"),
                       "data_layout has other dimensions"),
    "conv2d: block": (lambda: op.nn.conv2d(t(1, 2, 8, 8, 3), t(6, 4, 3, 3), data_layout="NCHW2c"),
                      "argument data has blocks of 3, not of NCHW2c"),
    "conv2d: rank": (lambda: op.nn.conv2d(t(4, 8, 8), t(6, 4, 3, 3)),
                     "argument data does not have the dimensions of NCHW"),
    "conv2d: out_layout": (lambda: op.nn.conv2d(IMAGE, t(6, 4, 3, 3), out_layout="NCHW4c"),
                           "NCHW4c does not divide dimension C, whose extent is 6"),
    "conv2d_transpose: extra": (
        lambda: op.nn.conv2d_transpose(IMAGE, t(4, 2, 3, 3), strides=2, output_padding=2),
        "output_padding is (2, 2)", "less than the strides"),
    "conv2d_transpose: padding": (
        lambda: op.nn.conv2d_transpose(t(1, 4, 1, 1), t(4, 2, 1, 1), padding=1),
        "dimension H of the result would have the extent -1"),
    "max_pool2d: padding": (lambda: op.nn.max_pool2d(IMAGE, pool_size=2, padding=2),
                            "the padding of dimension H is as wide as a window"),
    "avg_pool2d: bool": (lambda: op.nn.avg_pool2d(t(1, 4, 8, 8, dtype="bool")),
                         "takes numbers, not bool"),
    "lp_pool1d: power": (lambda: op.nn.lp_pool1d(t(1, 4, 8), p=0.0), "p is not positive", "p=0.0"),
    "lp_pool1d: ints": (lambda: op.nn.lp_pool1d(t(1, 4, 8, dtype="int8")), "takes floats"),
    "max_pool2d: out_layout": (lambda: op.nn.max_pool2d(IMAGE, out_layout="NHWC"),
                               "out_layout differs from layout", "layout_transform"),
    "global_avg_pool2d: empty": (lambda: op.nn.global_avg_pool2d(t(1, 4, 0, 8)),
                                 "dimension H has no elements"),
    "bias_add": (
        lambda: op.nn.bias_add(t(2, 3), t(4), axis=-1),
        "nn.bias_add: argument bias does not have the shape that follows from the others",
        "data Tensor[(2, 3), float32], bias Tensor[(4), float32]", "Tensor[(3), float32]",
    ),
    "bias_add: axis": (lambda: op.nn.bias_add(t(2), t(2)), "axis 1 is outside", "-1 to 0"),
    "batch_norm: dtype": (
        lambda: op.nn.batch_norm(IMAGE, t(4, dtype="float16"), ROW, ROW, ROW),
        "argument gamma has dtype float16"),
    "batch_norm: ints": (lambda: op.nn.batch_norm(t(1, 4, dtype="int8"), *[ROW] * 4),
                         "takes floats, not int8"),
    "group_norm": (lambda: op.nn.group_norm(IMAGE, ROW, ROW, num_groups=3),
                   "3 groups do not divide 4 channels"),
    "instance_norm": (lambda: op.nn.instance_norm(t(4, 2), ROW, ROW, axis=0),
                      "axis 0 is that of the images"),
    "dropout": (lambda: op.nn.dropout(IMAGE, rate=1.5), "rate is not a probability below 1"),
    "softmax": (lambda: op.nn.softmax(t()), "axis -1 is outside", "a tensor with dimensions"),
    "pad: pairs": (lambda: op.nn.pad(t(2, 3), pad_width=((1, 1),)), "pad_width has 1 pairs",
                   "2, one per dimension"),
    "pad: reflect": (lambda: op.nn.pad(t(3), pad_width=((3, 0),), pad_mode="reflect"),
                     "the border of dimension 0 is wider than what it shows", "at most 2"),
    "pad: edge": (lambda: op.nn.pad(t(0), pad_width=((1, 0),), pad_mode="edge"),
                  "dimension 0 has no element to repeat"),
    "pad: value": (lambda: op.nn.pad(t(3), t(1), pad_width=((1, 0),)),
                   "argument pad_value does not have the shape", "Tensor[(), float32]"),
    "sum: twice": (lambda: op.sum(t(2, 3), axis=(0, -2)), "axis names a dimension twice"),
    "sum: bool": (lambda: op.sum(t(2, dtype="bool")), "sum: takes numbers, not bool"),
    "all: numbers": (lambda: op.all(t(2)), "all: takes bools, not float32"),
    "norm": (lambda: op.norm(t(2), ord=-1.0), "ord is not positive"),
    "variance": (lambda: op.variance(t(2, 3), t(2), axis=1),
                 "argument mean does not have the shape", "Tensor[(2, 1), float32]"),
    "broadcast_to": (lambda: op.broadcast_to(t(2, 3), shape=(3,)), "more elements than the shape"),
    "broadcast_to: extent": (lambda: op.broadcast_to(t(2), shape=(4, 3)), "cannot be broadcast"),
    "repeat": (lambda: op.repeat(t(2), repeats=2, axis=1), "axis 1 is outside"),
    "strided_slice: count": (lambda: op.strided_slice(t(4), begin=(0, 1), end=(2,)),
                             "end has 1 numbers", "2, one per axis"),
    "strided_slice: step": (lambda: op.strided_slice(t(4), begin=0, end=2, strides=0),
                            "a stride is 0"),
    "strided_slice: rank": (lambda: op.strided_slice(t(4), begin=(0, 0), end=(1, 1)),
                            "2 axes are sliced, the tensor has 1"),
    "slice_like": (lambda: op.slice_like(t(2, 3), t(4, 3)), "dimension 0 has 2 elements, less"),
    "reverse_sequence": (lambda: op.reverse_sequence(t(4, 5), INDEX),
                         "argument seq_lengths does not have the shape", "Tensor[(4), int32]"),
    "sequence_mask": (lambda: op.sequence_mask(t(4), INDEX), "axis is not 0 or 1"),
    "take: floats": (lambda: op.take(t(4), t(2)), "argument indices has dtype float32",
                     "integers, but not uint64"),
    "take: empty": (lambda: op.take(t(0, 2), INDEX, axis=0), "dimension 0 has no element to take"),
    "take: batch": (lambda: op.take(t(4, 5), t(4, 2, dtype="int32"), axis=0, batch_dims=1),
                    "batch_dims is 1", "at most 0"),
    "gather": (lambda: op.gather(t(4, 5), INDEX, axis=0), "different numbers of dimensions"),
    "gather: extent": (lambda: op.gather(t(4, 2), t(3, 3, dtype="int32"), axis=0),
                       "dimension 1 of argument indices has 3 elements, of data 2"),
    "gather_nd": (lambda: op.gather_nd(t(4), t(2, 3, dtype="int32")),
                  "positions have 2 indices behind 0 dimensions"),
    "adv_index": (lambda: op.adv_index([t(4), INDEX, INDEX]), "2 indices are given for 1"),
    "scatter_elements": (lambda: op.scatter_elements(t(4), INDEX, t(2)),
                         "the indices and the updates have different shapes"),
    "scatter_nd": (lambda: op.scatter_nd(t(4, 2), t(1, 3, dtype="int32"), t(3)),
                   "the updates do not have the shape", "Tensor[(3, 2), float32]"),
    "scatter_nd: bool": (
        lambda: op.scatter_nd(t(4, dtype="bool"), t(1, 3, dtype="int32"), t(3, dtype="bool"),
                              mode="add"), "mode=add takes numbers, not bool"),
    "arange": (lambda: op.arange(start=0, stop=3, step=0), "the step is 0"),
    **{
        f"arange: endless {number}": (
            lambda at=at: op.arange(**{"start": 0, "stop": 4, **at}), "the sequence has no end")
        for number, at in enumerate((
            {"stop": float("inf")}, {"step": float("inf")}, {"start": float("nan")},
        ))
    },
    **{
        f"arange: fractions of {dtype}": (
            lambda dtype=dtype, at=at: op.arange(**{"start": 0, "stop": 4, **at}, dtype=dtype),
            "the start or the step of integers is no integer", f"dtype='{dtype}'")
        for dtype, at in (("int32", {"step": 0.5}), ("uint8", {"start": 0.5}))
    },
    "argmax: nothing": (lambda: op.argmax(t(3, 0), axis=1),
                        "argmax: dimension 1 has no elements, so none is at a position"),
    "one_hot": (lambda: op.one_hot(INDEX, t(), t(dtype="int32"), depth=3), "the dtypes differ"),
    "trilu": (lambda: op.trilu(t(3)), "argument data is not a matrix"),
    "meshgrid": (lambda: op.meshgrid([t(2, 3)]), "a tensor has more than one dimension"),
    "cumsum": (lambda: op.cumsum(t(3, dtype="bool"), axis=0), "takes numbers, not bool", "dtype="),
    "topk": (lambda: op.topk(t(3), k=4), "k is 4, dimension 0 has 3 elements"),
    "searchsorted": (lambda: op.searchsorted(t(2, 5), t(3, 4)),
                     "the tensors differ in a dimension before the last"),
    "layout_transform": (
        lambda: op.layout_transform(IMAGE, src_layout="NCHW", dst_layout="NCHW3c"),
        "NCHW3c does not divide dimension C, whose extent is 4"),
    "layout_transform: letters": (
        lambda: op.layout_transform(IMAGE, src_layout="NCHW", dst_layout="NCW"),
        "dst_layout has other dimensions"),
    "depth_to_space": (lambda: op.nn.depth_to_space(IMAGE, block_size=3),
                       "9 does not divide dimension C, whose extent is 4"),
    "space_to_batch_nd": (
        lambda: op.nn.space_to_batch_nd(t(2, 3), block_shape=2, paddings=((0, 0),)),
        "2 does not divide dimension 1, whose extent is 3"),
    "space_to_batch_nd: pairs": (
        lambda: op.nn.space_to_batch_nd(t(2, 3), block_shape=(3,), paddings=()),
        "block_shape has 1 numbers, paddings 0 pairs"),
    "batch_to_space_nd": (
        lambda: op.nn.batch_to_space_nd(t(2, 3), block_shape=(2,), crops=((5, 5),)),
        "more is cut off than dimension 1 has"),
    "dilate": (lambda: op.nn.dilate(t(2, 3), strides=(1,)), "strides are (1,)", "2 integers"),
    "sliding_window": (
        lambda: op.sliding_window(t(3), axis=0, window_shape=(4,), strides=(1,)),
        "dimension 0 has 3 elements, a window 4"),
    "resize2d: ints": (lambda: op.image.resize2d(t(1, 4, 8, 8, dtype="uint8"), size=4),
                       "linear interpolation gives floats, not uint8", "out_dtype"),
    "resize2d: empty": (lambda: op.image.resize2d(t(1, 4, 0, 8), size=4),
                        "dimension H has no elements"),
    "resize2d: roi": (lambda: op.image.resize2d(IMAGE, size=4, roi=(0.0, 1.0)),
                      "roi has 2 numbers", "4"),
    "upsampling: overflow": (lambda: op.nn.upsampling(IMAGE, scale_h=1e308),
                             "scale_h is too large"),
    "upsampling": (lambda: op.nn.upsampling(IMAGE, scale_h=-1), "scale_h is not positive"),
    "einsum": (lambda: op.einsum([t(2, 3), t(4, 5)], equation="ij,jk->ik"),
               "einsum: index j has the extents 3 and 4"),
    "einsum: rank": (lambda: op.einsum([t(2, 3)], equation="i->i"),
                     "not an equation for the operands", "operands with 2 dimensions"),
    "einsum: letters": (lambda: op.einsum([t(2, 3)], equation="ij->k"), "each once"),
    "attention: depth": (
        lambda: op.nn.scaled_dot_product_attention(t(2, 3), t(4, 5), t(4, 3)),
        "the elements of a query and a key differ: 3 and 5"),
    "attention: heads": (
        lambda: op.nn.scaled_dot_product_attention(t(3, 2, 4), t(2, 5, 4), t(2, 5, 4)),
        "dimension 0 has the extents 3, 2 and 2", "whole factor"),
    "attention: mask": (
        lambda: op.nn.scaled_dot_product_attention(t(2, 3), t(4, 3), t(4, 3), t(5, dtype="bool")),
        "cannot be broadcast"),
    "attention: mask dtype": (
        lambda: op.nn.scaled_dot_product_attention(t(2, 3), t(4, 3), t(4, 3), t(4, dtype="int8")),
        "argument mask has dtype int8", "bool or float32"),
    "nll_loss": (lambda: op.nn.nll_loss(t(3, 5), t(4, dtype="int64"), t(5)),
                 "argument targets does not have the shape", "Tensor[(3), int64]"),
    "nll_loss: classes": (
        lambda: op.nn.nll_loss(t(3, 0), INDEX, t(0)), "argument predictions has no classes"),
    "nll_loss: weights": (lambda: op.nn.nll_loss(t(3, 5), INDEX, t(3)),
                          "argument weights does not have the shape", "Tensor[(5), float32]"),
    "cross_entropy": (lambda: op.nn.cross_entropy(t(3), t(3)),
                      "argument predictions is not a matrix"),
    "grid_sample": (lambda: op.image.grid_sample(IMAGE, t(1, 3, 2, 2)),
                    "argument grid does not have the shape", "Tensor[(1, 2, 2, 2), float32]"),
    "grid_sample: method": (lambda: op.image.grid_sample(IMAGE, t(1, 2, 2, 2), method="trilinear"),
                            "method trilinear is not for 2 dimensions"),
    "affine_grid": (lambda: op.image.affine_grid(t(1, 3, 3), target_shape=4),
                    "argument data does not have the shape", "Tensor[(1, 2, 3), float32]"),
    "expand_dims": (lambda: op.expand_dims(t(3), axis=0, num_newaxis=2**31),
                    "the result has more than 64 dimensions"),
    "tile": (lambda: op.tile(t(3), reps=(2**60,)), "the result has too many elements"),
    "split: negative": (lambda: op.split(t(5), (-1,)), "an index is before the first element",
                        "(-1,)"),
    "reshape_like": (lambda: op.reshape_like(t(3), t(2)), "the shapes have 3 and 2 elements"),
    "lstm_cell": (
        lambda: op.nn.lstm_cell(t(2, 3), t(2, 4), t(2, 4), t(16, 5), t(16, 4)),
        "argument weight_ih does not have the shape", "Tensor[(16, 3), float32]"),
    "gru: rank": (lambda: op.nn.gru(t(2, 3), t(2, 4), t(12, 3), t(12, 4)),
                  "argument data has 2 dimensions", "3"),
    "gru_cell: rows": (
        lambda: op.nn.gru_cell(t(2, 3), graph.var("h"), t(11, 3), graph.var("w")),
        "argument weight_ih has 11 rows", "a multiple of 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_says_what_is_wrong(name):
    make, *texts = REFUSALS[name]
    with pytest.raises(GraphError) as caught:
        graph.type_of(make())
    for text in texts:
        assert text in str(caught.value)
    assert "got" in str(caught.value)


def test_each_refusal_names_the_operator():
    for make, *_ in REFUSALS.values():
        call = make()
        with pytest.raises(GraphError) as caught:
            graph.type_of(call)
        assert str(caught.value).startswith(call.op.name)


ATTRIBUTES = {
    "padding": (lambda: op.nn.conv2d(IMAGE, IMAGE, padding=(1, 2, 3)), "padding", "or 4: before"),
    "strides": (lambda: op.nn.conv2d(IMAGE, IMAGE, strides=0), "strides", "at least 1"),
    "layout": (lambda: op.nn.max_pool2d(IMAGE, layout="NCHW16"), "layout", "NCHW16c"),
    "mode": (lambda: op.take(IMAGE, INDEX, mode="raise"), "mode", "'clip', 'wrap', 'fast'"),
    "pairs": (lambda: op.nn.pad(IMAGE, pad_width=((1, -1),)), "pad_width", "at least 0"),
    "required": (lambda: op.gather(IMAGE, INDEX), "axis is missing"),
    "positions": (lambda: op.topk(IMAGE, dtype="uint8"), "dtype", "'int32', 'int64'"),
    "bound": (lambda: op.clip(IMAGE, a_min=float("nan"), a_max=1.0), "a_min", "may be infinite"),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_wrong_attribute_is_refused_when_the_call_is_made(name):
    make, *texts = ATTRIBUTES[name]
    with pytest.raises(GraphError) as caught:
        make()
    for text in texts:
        assert text in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda i: op.gather(t(3), i, axis=0),
        lambda i: op.gather_nd(t(3), op.expand_dims(i, axis=0)),
        lambda i: op.adv_index([t(3), i]), lambda i: op.scatter_elements(t(3), i, t(1, name="y")),
        lambda i: op.scatter_nd(t(3), op.expand_dims(i, axis=0), t(1, name="y")),
        lambda i: op.nn.nll_loss(t(3), op.squeeze(i), t(3, name="y")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("index", [-4, 3])
def test_an_index_outside_ends_a_run(make, index):
    call = make(graph.constant([index]))
    values = [[1.0, 2.0, 3.0], *([1.0] * p.type.shape[0] for p in free_vars(call)[1:])]
    with pytest.raises(ProgramError, match=r"an index is outside the dimension|is no class"):
        graph.evaluate(call, *values)


@pytest.mark.parametrize(
    "define",
    [
        lambda x, i, y: indexing.scatter_elements(x, i, y, 0, "add"),
        lambda x, i, y: indexing.scatter_nd(x, transforms.reshape(i, (1, 1)), y, "update"),
        lambda x, i, y: losses.nll_loss(x, transforms.reshape(i, ()), x, "sum", -100),
    ],
)  # fmt: skip
@pytest.mark.parametrize("index", [-4, 3])
def test_an_index_outside_ends_a_definition(define, index):
    x, i, y = (
        te.placeholder((n,), d, d) for n, d in ((3, "float32"), (1, "int32"), (1, "float32"))
    )
    values = {x: np.ones(3, "float32"), i: np.array([index], "int32"), y: np.ones(1, "float32")}
    with pytest.raises(ProgramError, match="out of bounds"):
        te.evaluate(output := define(x, i, y), read_by([output], values))


def test_a_slice_by_size_begins_at_the_first_element_if_its_begin_is_before():
    sliced = op.strided_slice(t(5), begin=-7, end=3, slice_mode="size")
    assert list(graph.evaluate(sliced, [0.0, 1.0, 2.0, 3.0, 4.0])) == [0, 1, 2]
