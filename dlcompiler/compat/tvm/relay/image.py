"""Classic TVM's ``tvm.relay.image``: operators on images, which the operator table has."""

from dlcompiler.compat.relay.operators import finder, names

__getattr__ = finder("tvm.relay.image", "image.")


def __dir__() -> list[str]:
    return names("image.")
