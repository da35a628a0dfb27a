"""Cases of operators that move blocks, resize images, and combine tensors by index."""

from tests.graph.operators.operator_cases import Given, case

REARRANGING = {
    "layout_transform": [
        case((1, 8, 3, 2), src_layout="NCHW", dst_layout="NCHW4c"),
        case((2, 3, 5, 8), src_layout="NHWC", dst_layout="NCHW8c"),
        case((1, 2, 3, 2, 4), src_layout="NCHW4c", dst_layout="NHWC"),
        case((4, 4, 2, 1), src_layout="OIHW", dst_layout="OIHW2i4o"), case((0, 3), src_layout="NC",
                                                                        dst_layout="CN"),
    ],
    "nn.depth_to_space": [case((1, 8, 2, 3), block_size=2), case((1, 8, 1, 3), block_size=2,
                                                                mode="CRD"),
                          case((2, 3, 2, 9), block_size=3,
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
                  case((0, 2), strides=(3, 1)), case((2,), strides=2, dilation_value=-300.0)],
    "sliding_window": [case((2, 5, 4), axis=1, window_shape=(3, 2), strides=(2, 1)),
                       case((6,), axis=-1, window_shape=6, strides=1),
                       case((0, 3), axis=1, window_shape=2, strides=1)],
}  # fmt: skip


def _resizes(rank):
    spatial, up, down = (5, 4, 3)[:rank], (7, 8, 5)[:rank], (2, 3, 1)[:rank]
    letters = {1: "W", 2: "HW", 3: "DHW"}[rank]
    modes = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
    found = [
        case((1, 2, *spatial), size=size, method=method, coordinate_transformation_mode=mode)
        for size in (up, down)
        for method, mode in zip(("linear", "cubic", "linear", "nearest_neighbor"), modes,
                                strict=True)
    ]  # fmt: skip
    found += [
        case((1, 1, *spatial), size=down, method="nearest_neighbor", rounding_method=rounding,
             coordinate_transformation_mode=mode)
        for rounding in ("floor", "ceil", "round", "round_prefer_floor", "round_prefer_ceil")
        for mode in ("half_pixel", "tf_half_pixel_for_nn")
    ]  # fmt: skip
    roi = (0.25, -0.5, 0.0)[:rank] + (0.75, 1.5, 1.0)[:rank]
    return [
        *found,
        case((1, *spatial, 2), size=up, layout=f"N{letters}C", method="cubic", cubic_alpha=-0.75,
             cubic_exclude=True),
        case((1, 2, *spatial), size=down, method="linear", scales=(0.45,) * rank,
             coordinate_transformation_mode="half_pixel_symmetric"),
        case((1, 2, *spatial), size=up, coordinate_transformation_mode="tf_crop_and_resize",
             roi=roi, extrapolation_value=9.0),
        case((1, 1, *spatial), size=2, method="nearest_neighbor", roi=roi,
             coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=-300.0),
        case((1, 1, *spatial), size=(2,) * rank, scales=(0.6, 0.5, 0.7)[:rank]),
        case((0, 2, *spatial), size=1), case((1, 1, *(1,) * rank), size=3, method="cubic"),
    ]  # fmt: skip


RESIZE = {
    **{f"image.resize{rank}d": _resizes(rank) for rank in (1, 2, 3)},
    "nn.upsampling": [
        case((1, 2, 3, 2), scale_h=2, scale_w=3), case((1, 3, 2, 2), scale_h=1.5, layout="NHWC"),
        case((1, 1, 3, 4), scale_h=2, scale_w=2, method="bilinear", align_corners=True),
        case((1, 1, 3, 2), scale_h=2, method="bicubic"), case((0, 2, 1, 1), scale_h=2),
        case((1, 1, 3, 2), scale_w=0.1),
    ],
    "nn.upsampling3d": [
        case((1, 2, 2, 3, 2), scale_d=2, scale_h=1, scale_w=2),
        case((1, 1, 2, 2, 3), scale_d=2, scale_h=2, method="trilinear"),
    ],
}  # fmt: skip

CONTRACTION = {
    "einsum": [
        case([(2, 3), (3, 4)], equation="ij,jk->ik"), case([(2, 3), (3, 4)], equation="ij, jk"),
        case([(3, 3)], equation="ii"), case([(2, 3, 3)], equation="bii->bi"),
        case([(2, 3), (4,)], equation="ij,k->kji"), case([(2, 3)], equation="ij->"),
        case([(5, 2, 3), (1, 3, 4)], equation="...ij,...jk->...ik"),
        case([(2, 3, 4), (2, 4)], equation="b...d,bd->b..."), case([()], equation="->"),
        case([(2, 0), (0, 3)], equation="ij,jk->ik"),
        case([(2, 3), (3, 2), (3,)], equation="ij,ji,j->i"),
        case([(2, 3)], equation="i..."), case([(2, 2, 3), (3,)], equation="ii...,...->..."),
    ],
}  # fmt: skip

_GRID = Given((2, 2, 3, 4), low=-1.4, high=1.4)
SAMPLING = {
    "image.grid_sample": [
        *(case((2, 3, 4, 5), _GRID, method=method, padding_mode=padding, align_corners=align)
          for method in ("bilinear", "nearest", "bicubic")
          for padding in ("zeros", "border", "reflection") for align in (True, False)),
        case((1, 2, 2, 3, 4), Given((1, 3, 2, 1, 3), low=-1.2, high=1.2), layout="NCDHW",
             method="trilinear"),
        case((1, 1, 1, 1), Given((1, 2, 2, 2)), padding_mode="reflection", is_smooth=False),
        case((0, 2, 3, 3), (0, 2, 2, 2)),
    ],
    "image.affine_grid": [case((2, 2, 3), target_shape=(3, 4)), case((1, 2, 3), target_shape=1),
                          case((0, 2, 3), target_shape=2)],
}  # fmt: skip

ANNOTATIONS = {
    "annotation.stop_fusion": [case((2, 3)), case(()), case((0,))],
    "on_device": [case((2, 3), device="cpu"), case((), device="gpu")],
    "device_copy": [case((2, 3), source="cpu", target="gpu"), case((0,), source="a", target="b")],
}
