"""Classic TVM's ``vta.testing.simulator``: the counters of the simulators."""

from dlcompiler.compat import accelerator_modules
from dlcompiler.compat.accelerator_modules import clear_stats
from dlcompiler.compat.environments import get_env
from dlcompiler.compat.missing import reporter


def enabled() -> bool:
    """Tell whether the simulators are there: always."""
    return True


def stats() -> dict[str, int]:
    """Return the counters since `clear_stats`.

    They are those of the functional simulator, or for the target ``"tsim"`` the cycles of the timed
    one.
    """
    return accelerator_modules.stats(get_env().TARGET == "tsim")


__getattr__ = reporter(__name__)
__all__ = ["clear_stats", "enabled", "stats"]
