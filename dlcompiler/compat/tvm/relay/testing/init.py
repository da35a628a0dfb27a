"""Classic TVM's ``tvm.relay.testing.init``."""

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay.models import create_workload

__getattr__ = reporter(__name__)
__all__ = ["create_workload"]
