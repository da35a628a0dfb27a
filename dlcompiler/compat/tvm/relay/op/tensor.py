"""Classic TVM's ``tvm.relay.op.tensor``: functions that `tvm.relay` also has."""

from dlcompiler.compat.relay.operators import finder, names

__getattr__ = finder("tvm.relay.op.tensor")


def __dir__() -> list[str]:
    return names()
