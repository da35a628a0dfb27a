"""Classic TVM's ``tvm.relay.dataflow_pattern``: patterns of calls."""

from dlcompiler.compat.missing import reporter
from dlcompiler.graph.passes.devices import is_constant, is_op, wildcard

__getattr__ = reporter(__name__)
__all__ = ["is_constant", "is_op", "wildcard"]
