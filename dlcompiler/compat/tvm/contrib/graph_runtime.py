"""Classic TVM's ``tvm.contrib.graph_runtime``: the older name of `graph_executor`."""

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm.contrib.graph_executor import GraphModule, create

__getattr__ = reporter(__name__)
__all__ = ["GraphModule", "create"]
