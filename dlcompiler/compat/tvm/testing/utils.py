"""Classic TVM's ``tvm.testing.utils``."""

from dlcompiler.compat.missing import reporter


def install_request_hook(depth: int = 0) -> None:
    """Do nothing: classic tutorials call it to redirect downloads of their test machines."""
    del depth


__getattr__ = reporter(__name__)
__all__ = ["install_request_hook"]
