"""Classic TVM's ``tvm.relay.nn``: layers, which the operator table has."""

from dlcompiler.compat.relay.operators import finder, names

__getattr__ = finder("tvm.relay.nn", "nn.")


def __dir__() -> list[str]:
    return names("nn.")
