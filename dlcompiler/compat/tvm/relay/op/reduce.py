"""Classic TVM's ``tvm.relay.op.reduce``: functions that `tvm.relay` also has."""

from dlcompiler.compat.relay.operators import finder, names

__getattr__ = finder("tvm.relay.op.reduce")


def __dir__() -> list[str]:
    return names()
