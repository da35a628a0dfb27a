"""Classic TVM's ``tvm.relay.annotation``: markers, which the operator table has."""

from dlcompiler.compat.relay.operators import finder, names

__getattr__ = finder("tvm.relay.annotation", "annotation.")


def __dir__() -> list[str]:
    return names("annotation.")
