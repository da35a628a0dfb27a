"""Cases of operators that move blocks, resize images, and combine tensors by index."""

from tests.graph.operators.operator_cases import case

REARRANGING = {
    "layout_transform": [
        case((1, 8, 3, 2), src_layout="NCHW", dst_layout="NCHW4c"),
        case((2, 3, 5, 8), src_layout="NHWC", dst_layout="NCHW8c"),
        case((1, 2, 3, 2, 4), src_layout="NCHW4c", dst_layout="NHWC"),
        case((4, 4, 2, 1), src_layout="OIHW", dst_layout="OIHW2i4o"), case((0, 3), src_layout="NC",
                                                                        dst_layout="CN"),
    ],
    "nn.depth_to_space": [case((1, 8, 2, 3), block_size=2), case((2, 3, 2, 9), block_size=3,
                                                               layout="NHWC", mode="CRD"),
                          case((1, 4, 0, 2), block_size=2)],
    "nn.space_to_depth": [case((1, 2, 4, 6), block_size=2), case((2, 3, 6, 1), block_size=3,
                                                               layout="NHWC"),
                          case((1, 1, 2, 2), block_size=1)],
    "nn.space_to_batch_nd": [
        case((2, 3, 4, 2), block_shape=(2, 3), paddings=((1, 0), (0, 2)), pad_value=2.0),
        case((1, 4), block_shape=(2,), paddings=((0, 0),)), case((3,), block_shape=(), paddings=()),
    ],
    "nn.batch_to_space_nd": [
        case((6, 2, 3, 2), block_shape=(3, 2), crops=((1, 0), (0, 2))),
        case((2, 3), block_shape=(2,), crops=((0, 0),)), case((0, 2), block_shape=2,
                                                              crops=((1, 1),)),
    ],
    "nn.dilate": [case((2, 3), strides=(2, 3), dilation_value=5.0), case((), strides=()),
                  case((0, 2), strides=(3, 1))],
    "sliding_window": [case((2, 5, 4), axis=1, window_shape=(3, 2), strides=(2, 1)),
                       case((6,), axis=-1, window_shape=6, strides=1),
                       case((0, 3), axis=1, window_shape=2, strides=1)],
}  # fmt: skip
