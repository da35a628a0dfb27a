"""Classic TVM's ``tvm.relay.testing``: models, and weights for them."""

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay.models import create_workload, run_infer_type, run_opt_pass
from dlcompiler.compat.tvm.relay.testing import (
    dcgan,
    dqn,
    init,
    layers,
    lstm,
    mlp,
    mobilenet,
    resnet,
    squeezenet,
    vgg,
)

__getattr__ = reporter(__name__)
__all__ = [
    "create_workload",
    "dcgan",
    "dqn",
    "init",
    "layers",
    "lstm",
    "mlp",
    "mobilenet",
    "resnet",
    "run_infer_type",
    "run_opt_pass",
    "squeezenet",
    "vgg",
]
