"""Classic TVM's package ``vta``: ``from dlcompiler.compat import vta``.

VTA is simulated: values and counters by the functional simulator, times by the timed one.
"""

from dlcompiler.compat.environments import Environment, get_env
from dlcompiler.compat.missing import reporter, watch_imports
from dlcompiler.compat.sessions import LocalSession
from dlcompiler.compat.vta import build_module, environment, testing
from dlcompiler.compat.vta.build_module import build, build_config, lower

watch_imports()


def reconfig_runtime(remote: LocalSession) -> None:
    """Do nothing: the simulators take each program's own configuration."""
    del remote


def program_fpga(remote: LocalSession, bitstream: object = None) -> None:
    """Do nothing: boards are simulated."""
    del remote, bitstream


__getattr__ = reporter(__name__)
__all__ = [
    "Environment",
    "build",
    "build_config",
    "build_module",
    "environment",
    "get_env",
    "lower",
    "program_fpga",
    "reconfig_runtime",
    "testing",
]
