"""Classic TVM's ``tvm.contrib.graph_executor``: models that run."""

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay.executors import GraphModule, create

__getattr__ = reporter(__name__)
__all__ = [
    "GraphModule",
    "create",
]
