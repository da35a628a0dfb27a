"""A pool around whatever measures one config at a time."""

import threading
from dataclasses import replace

from dlcompiler.autotune import MeasurePool, Result, SerialPool
from dlcompiler.autotune.pools.measure_pool import Device
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.space import Config

CONFIGS = [
    Config({"tile_m": n, "tile_n": 16, "pack": True, "unroll_k": 1}, "abc") for n in (2, 4, 6)
]


def test_configs_are_reported_in_order_with_the_best_so_far(fake):
    told = []

    class Keeping(fake):
        def measure(self, config, best_s):
            told.append(best_s)
            return super().measure(config, best_s)

    pool: MeasurePool = SerialPool(Keeping(), Device("x86:test"))
    reported = []
    pool.measure(CONFIGS, None, lambda number, result: reported.append((number, result)))
    assert [number for number, _ in reported] == [0, 1, 2]
    assert told == [None, reported[0][1].seconds, reported[1][1].seconds]
    assert all(result.run_s > 0 for _, result in reported)
    assert pool.devices == (Device("x86:test"),)


def test_what_a_measurer_says_of_its_time_is_kept(fake):
    given = Result("refused", message="why", build_s=0.5)
    pool = SerialPool(fake(faults={0: given}), Device("x86:test"))
    reported = []
    pool.measure(CONFIGS[:1], None, lambda _, result: reported.append(result))
    assert reported == [replace(given, provenance=Provenance("measured", "x86:test"))]


def test_an_interrupt_ends_the_batch(fake):
    pool = SerialPool(fake(seconds=30.0), Device("x86:test"))
    reported = []
    thread = threading.Thread(
        target=pool.measure, args=(CONFIGS, None, lambda *args: reported.append(args))
    )
    thread.start()
    while thread.is_alive():
        pool.interrupt()
        thread.join(0.02)
    assert not reported
    pool.close()
