"""The converters of operators: name of an MXNet operator -> what makes expressions of its nodes."""

from collections.abc import Mapping

from dlcompiler.graph.frontends.mxnet.node import Converter
from dlcompiler.graph.frontends.mxnet.operators import (
    attention,
    elementwise,
    images,
    indexing,
    layers,
    recurrent,
    shapes,
)

OPERATORS: Mapping[str, Converter] = {
    **attention.TABLE,
    **elementwise.TABLE,
    **images.TABLE,
    **indexing.TABLE,
    **layers.TABLE,
    **recurrent.TABLE,
    **shapes.TABLE,
}
"""Converters of the operators that are known, with the names that they had in older versions."""
LABELLED = frozenset((
    "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", "SVMOutput",
    "Softmax", "SoftmaxOutput",
))  # fmt: skip
"""Operators whose operands after the first one are labels, which only training reads."""
WITHOUT_EFFECT = frozenset((
    "ctx_group", "cudnn_off", "cudnn_tune", "force_mirroring", "grad_scale", "ignore_label",
    "lr_mult", "mirror_stage", "momentum", "normalization", "num_args", "out_grad",
    "smooth_alpha", "sparse_grad", "use_ignore", "valid_thresh", "wd_mult", "workspace",
))  # fmt: skip
"""Attributes that do not change what a node computes in inference."""
