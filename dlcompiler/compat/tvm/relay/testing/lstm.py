"""Classic TVM's ``tvm.relay.testing.lstm``."""

from typing import Any

from dlcompiler import graph
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay import models

get_workload = models.lstm


def get_net(*args: Any, **options: Any) -> graph.Function:
    """Return the function of the model."""
    return models.net(get_workload(*args, **options))


__getattr__ = reporter(__name__)
__all__ = ["get_net", "get_workload"]
