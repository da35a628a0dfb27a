"""A measure pool that measures one config after the other with a `Measurer`."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from dlcompiler.autotune.candidate import Tried
from dlcompiler.autotune.pools.measure import Measurer
from dlcompiler.autotune.pools.measure_pool import Device, Report


class SerialPool:
    """Measures a batch in order, without overlap.

    Parameters
    ----------
    measurer : Measurer
        Measures one candidate.
    device : Device
        The device that it measures on.
    """

    def __init__(self, measurer: Measurer, device: Device) -> None:
        self.note = ""
        """A note for the user about the times; empty."""
        self._measurer = measurer
        self._device = device
        self._interrupted = threading.Event()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The device that it measures on."""
        return (self._device,)

    def measure(self, configs: Sequence[Tried], best_s: float | None, report: Report) -> None:
        """Measure a batch; see `dlcompiler.autotune.pools.measure_pool.MeasurePool`."""
        self._interrupted.clear()
        for number, config in enumerate(configs):
            start = time.perf_counter()
            result = self._measurer.measure(config, best_s)
            if self._interrupted.is_set():
                return  # the result of an interrupted measurement is meaningless
            if not (result.build_s or result.run_s):
                result = replace(result, run_s=time.perf_counter() - start)
            result = self._device.labelled(result)
            if result.seconds is not None and (best_s is None or result.seconds < best_s):
                best_s = result.seconds
            report(number, result)

    def interrupt(self) -> None:
        """End the measurement that another thread waits for, and the batch with it."""
        self._interrupted.set()
        self._measurer.interrupt()

    def close(self) -> None:
        """Release the resources of the measurer."""
        self._measurer.close()
