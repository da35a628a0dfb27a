"""Classic TVM's ``vta.environment``."""

from dlcompiler.compat.environments import Environment, get_env
from dlcompiler.compat.missing import reporter

__getattr__ = reporter(__name__)
__all__ = ["Environment", "get_env"]
