"""Classic TVM's ``vta.testing``."""

from collections.abc import Callable
from typing import Any

from dlcompiler.compat.environments import Environment, get_env
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.sessions import LocalSession
from dlcompiler.compat.vta.testing import simulator


def run(run_func: Callable[[Environment, LocalSession], Any]) -> None:
    """Call a function with the current environment, and a session with the simulators."""
    run_func(get_env(), LocalSession())


__getattr__ = reporter(__name__)
__all__ = ["run", "simulator"]
