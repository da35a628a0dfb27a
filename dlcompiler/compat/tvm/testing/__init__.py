"""Classic TVM's ``tvm.testing``."""

from typing import Any

import numpy as np

from dlcompiler.compat.arrays import unwrapped
from dlcompiler.compat.devices import Device, cpu
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm.runtime import enabled
from dlcompiler.compat.tvm.testing import utils


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """Fail if arrays differ by more than a relative or an absolute tolerance, or in shape."""
    actual, desired = np.asanyarray(unwrapped(actual)), np.asanyarray(unwrapped(desired))
    np.testing.assert_allclose(actual.shape, desired.shape)
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=True)


def device_enabled(target: Any) -> bool:
    """Tell whether code for a kind of target can run here; GPUs are simulated."""
    return enabled(str(target))


def enabled_targets() -> list[tuple[str, Device]]:
    """Return the kinds of targets that code can be built for here, each with a device."""
    return [("llvm", cpu(0))]


__getattr__ = reporter(__name__)
__all__ = ["assert_allclose", "device_enabled", "enabled_targets", "utils"]
