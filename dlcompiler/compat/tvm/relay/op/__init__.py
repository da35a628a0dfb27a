"""Classic TVM's ``tvm.relay.op``: operators, and the functions that make calls of them."""

from dlcompiler.compat.missing import LATER, refuse_name
from dlcompiler.compat.relay.expressions import Op
from dlcompiler.compat.relay.operators import finder, names
from dlcompiler.compat.tvm.relay import annotation, image, nn

get = Op.get
"""Return an operator by its name."""

_operator = finder("tvm.relay.op")


def __getattr__(name: str) -> object:
    if f"tvm.relay.op.{name}" in LATER:
        refuse_name(f"tvm.relay.op.{name}")
    return _operator(name)


def __dir__() -> list[str]:
    return [*__all__, *names()]


__all__ = ["Op", "annotation", "get", "image", "nn"]
