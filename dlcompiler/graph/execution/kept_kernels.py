"""Kernels that this process has built: a model that is built again, or another one, takes them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace

from dlcompiler import registry
from dlcompiler.graph.execution.kernels import ModelKernel, Records, built_kernel
from dlcompiler.graph.execution.steps import KernelCall
from dlcompiler.graph.ir import structural_key
from dlcompiler.target import Target

MOST_KEPT = 512
"""Most kernels that are kept; those that were used last [1]."""


class KeptKernels:
    """Kernels by what they compute, and for which target."""

    def __init__(self) -> None:
        self._kernels: OrderedDict[Hashable, ModelKernel] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, build: Callable[[], ModelKernel]) -> ModelKernel:
        """Return the kernel of a key, which is built if it is not kept.

        Parameters
        ----------
        key : hashable
            What decides how it is built.
        build : callable
            Builds it.
        """
        with self._lock:
            found = self._kernels.get(key)
        if found is None:
            made = build()
            # The caller may apply steps to its schedule: ours stays where it is.
            found = replace(made, schedule=made.schedule.fork("kept"))
        with self._lock:
            self._kernels[key] = found
            self._kernels.move_to_end(key)
            while len(self._kernels) > MOST_KEPT:
                self._kernels.popitem(last=False)
        return replace(found, schedule=found.schedule.fork("main"))

    def clear(self) -> None:
        """Forget all kernels."""
        with self._lock:
            self._kernels.clear()


KEPT = KeptKernels()
"""The kernels of this process."""


def kernel_for(call: KernelCall, target: Target, db: Records | None) -> ModelKernel:
    """Return a kernel of a model, built now or before.

    Parameters
    ----------
    call, target, db
        As of `built_kernel`. With records, it is built anew: they may have changed.
    """
    if db is not None:
        return built_kernel(call, target, db)
    kinds = tuple(param.type for param in call.function.params)
    key = (structural_key(call.function), kinds, call.is_in_place, call.constants, target,
           registry.changes())  # fmt: skip
    kept = KEPT.get(key, lambda: built_kernel(call, target))
    return replace(kept, function=call.function)
