"""The operator library: definitions, NumPy references, and a schedule for each kind of device.

An operator has a definition as a tensor expression and a NumPy reference with a derived error
bound. For each kind of device it has a schedule, which reads a config: the space of configs is what
a tuner searches, and the default config is chosen by a formula. `select` chooses operator and
config, `Operator.template` makes the schedule. Templates are deterministic and read only (workload,
target, config). Weights are packed once, before the calls: `Operator.prepack`::

    >>> import dlcompiler as dlc, numpy as np
    >>> from dlcompiler import ops
    >>> from dlcompiler.target import resolve
    >>> image, weight = np.ones((1, 8, 6, 6), "f"), np.ones((16, 8, 3, 3), "f")
    >>> target = resolve("cpu")
    >>> chosen = ops.select("conv2d", dict(c=8, h=6, w=6, o=16, kernel=3, padding=1), target)
    >>> schedule, args = chosen.operator.template(chosen.workload, target, chosen.config)
    >>> kernel = dlc.build(schedule, args, target)
    >>> inputs = chosen.operator.prepack(chosen.workload, {"data": image, "weight": weight})
    >>> result = np.empty((1, 16, 6, 6), "f")
    >>> kernel(*inputs.values(), result)
    >>> result[0, 0, 0, :3].round().tolist()
    [32.0, 48.0, 48.0]

"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from dlcompiler.errors import TuningError
from dlcompiler.ops.base import (
    DeviceSchedule,
    Operator,
    Reference,
    Selection,
    by_device,
    workload_from,
)
from dlcompiler.ops.conv2d.plain import (
    conv2d_hwcn,
    conv2d_nchw,
    conv2d_nhwc,
    depthwise_conv2d_nchw,
)
from dlcompiler.ops.gemm import batch_matmul, dense, matmul
from dlcompiler.ops.tuned import Tuned, config_for
from dlcompiler.registry import Registry
from dlcompiler.target import Target

__all__ = [
    "REGISTRY",
    "DeviceSchedule",
    "Operator",
    "Reference",
    "Selection",
    "batch_matmul",
    "by_device",
    "config_for",
    "conv2d_hwcn",
    "conv2d_nchw",
    "conv2d_nhwc",
    "dense",
    "depthwise_conv2d_nchw",
    "matmul",
    "names",
    "operator",
    "select",
]

#: Name of an operator -> where its `Operator` is found.
REGISTRY: Registry[Operator] = Registry(
    "operator",
    {
        "matmul": "dlcompiler.ops.gemm:MATMUL",
        "dense": "dlcompiler.ops.gemm:DENSE",
        "batch_matmul": "dlcompiler.ops.gemm:BATCH_MATMUL",
        "depthwise_conv2d": "dlcompiler.ops.depthwise:DEPTHWISE",
        "conv2d_direct": "dlcompiler.ops.conv2d.direct:CONV2D_DIRECT",
        "conv2d_winograd": "dlcompiler.ops.conv2d.winograd:WINOGRAD",
        "conv2d_gemm": "dlcompiler.ops.conv2d.gemm:CONV2D_GEMM",
        "bitserial_dense": "dlcompiler.ops.bitserial.dense:BITSERIAL_DENSE",
        "bitserial_conv2d": "dlcompiler.ops.bitserial.conv2d:BITSERIAL_CONV2D",
        "pool2d": "dlcompiler.ops.pool2d:POOL2D",
        "softmax": "dlcompiler.ops.softmax:SOFTMAX",
        "log_softmax": "dlcompiler.ops.softmax:LOG_SOFTMAX",
        "layer_norm": "dlcompiler.ops.norms:LAYER_NORM",
        "rms_norm": "dlcompiler.ops.norms:RMS_NORM",
        "group_norm": "dlcompiler.ops.group_norms:GROUP_NORM",
        "instance_norm": "dlcompiler.ops.group_norms:INSTANCE_NORM",
        "batch_norm": "dlcompiler.ops.batch_norm:BATCH_NORM",
        "attention": "dlcompiler.ops.attention_operator:ATTENTION",
        "lstm": "dlcompiler.ops.recurrent_operator:LSTM",
        "gru": "dlcompiler.ops.recurrent_operator:GRU",
        "rnn": "dlcompiler.ops.recurrent_operator:RNN",
        "cumsum": "dlcompiler.ops.cumsum:CUMSUM",
        "elementwise": "dlcompiler.ops.arithmetic:ELEMENTWISE",
        "reduction": "dlcompiler.ops.reduction:REDUCTION",
        "transpose": "dlcompiler.ops.data_movement:TRANSPOSE",
        "pad": "dlcompiler.ops.data_movement:PAD",
        "concatenate": "dlcompiler.ops.data_movement:CONCATENATE",
        "strided_slice": "dlcompiler.ops.selections:STRIDED_SLICE",
        "split": "dlcompiler.ops.selections:SPLIT",
        "flip": "dlcompiler.ops.selections:FLIP",
        "tile": "dlcompiler.ops.selections:TILE",
        "repeat": "dlcompiler.ops.selections:REPEAT",
        "reshape": "dlcompiler.ops.selections:RESHAPE",
        "take": "dlcompiler.ops.selections:TAKE",
        "gather": "dlcompiler.ops.selections:GATHER",
        "embedding": "dlcompiler.ops.selections:EMBEDDING",
        "one_hot": "dlcompiler.ops.selections:ONE_HOT",
        "depth_to_space": "dlcompiler.ops.selections:DEPTH_TO_SPACE",
        "space_to_depth": "dlcompiler.ops.selections:SPACE_TO_DEPTH",
        "resize2d": "dlcompiler.ops.resize2d:RESIZE2D",
        "conv2d_packed": "dlcompiler.ops.packed.conv2d:CONV2D_PACKED",
        "depthwise_conv2d_packed": "dlcompiler.ops.packed.conv2d:DEPTHWISE_PACKED",
        "conv2d_transpose_packed": "dlcompiler.ops.packed.transpose:CONV2D_TRANSPOSE_PACKED",
        "dense_packed": "dlcompiler.ops.packed.dense:DENSE_PACKED",
        "batch_matmul_packed": "dlcompiler.ops.packed.dense:BATCH_MATMUL_PACKED",
        "avg_pool2d_packed": "dlcompiler.ops.packed.avg_pool:AVG_POOL2D_PACKED",
        "max_pool2d_packed": "dlcompiler.ops.packed.max_pool:MAX_POOL2D_PACKED",
    },
)


def names() -> tuple[str, ...]:
    """Return the names of all operators."""
    return tuple(REGISTRY)


def operator(name: str) -> Operator:
    """Return an operator by its name.

    Parameters
    ----------
    name : str
        One of `names`.

    Raises
    ------
    TuningError
        If there is none.

    Examples
    --------
    >>> operator("matmul").workload(m=64, n=64, k=64)
    Workload(op='matmul', params=(('m', 64), ('n', 64), ('k', 64), ('dtype', 'float32')))
    """
    return REGISTRY.find(name, "find an operator", error=TuningError)


def select(
    kind: str,
    params: Mapping[str, Any],
    target: Target,
    tuned: Tuned | None = None,
    *,
    is_exact: bool = False,
) -> Selection:
    """Choose the operator and the config that compute something fastest.

    Parameters
    ----------
    kind : str
        Name of an operator, or ``"conv2d"``, which several operators compute.
    params : mapping
        Parameters of its workload.
    target : Target
        The machine that it is built for.
    tuned : mapping, optional
        Configs by workload; by default those that are shipped. With an empty one, estimates decide.
    is_exact : bool
        Consider only operators with the rounding errors of the definition, which propagate NaN and
        infinity as it does.

    Returns
    -------
    Selection

    Examples
    --------
    >>> from dlcompiler.target import resolve
    >>> select("matmul", dict(m=64, n=64, k=64), resolve("x86-64-avx2")).operator.name
    'matmul'
    """
    if kind == "conv2d":
        choose = importlib.import_module("dlcompiler.ops.conv2d.choose")
        selection: Selection = choose.select_conv2d(params, target, tuned, is_exact=is_exact)
        return selection
    found = operator(kind)
    workload = workload_from(kind, found.make_workload, params)
    other = found.simpler(workload)
    if other is not None:
        found, workload = operator(other.op), other
    return Selection(found, workload, config_for(found, workload, target, tuned))
