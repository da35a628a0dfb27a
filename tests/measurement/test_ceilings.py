"""The ceilings of this machine: what is measured, and what is kept of it."""

import os
from dataclasses import replace

import numpy as np
import pytest

from dlcompiler.measurement import ceilings as module
from dlcompiler.measurement.ceilings import (
    Ceilings,
    measure_ceilings,
    remote_ceilings,
    working_sets,
)
from dlcompiler.measurement.known_ceilings import (
    KEPT_S,
    ceilings_text,
    keep_ceilings,
    known_ceilings,
    read_ceilings,
)
from dlcompiler.measurement.streams import granularity, stream
from dlcompiler.runtime import object_cache
from dlcompiler.runtime.object_cache import ObjectCache
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.runtime.timing import measured_here
from dlcompiler.target import CacheLevel, resolve


def made(threads=2, dtype="float32", peak=120.5):
    names = [*(level.name for level in resolve("cpu").caches), "memory"]
    reads = tuple((name, 400.0 / (n + 1)) for n, name in enumerate(names))
    return Ceilings(threads, dtype, peak, reads, measured_here())


@pytest.fixture
def short(monkeypatch):
    """Measure with little work: what is measured does not matter here."""
    monkeypatch.setattr(module, "_SAMPLES", 1)
    for name in ("_READ_BYTES", "_READ_BYTES_TOGETHER", "_SMALLEST_BEHIND", "_LARGEST_BEHIND"):
        monkeypatch.setattr(module, name, 1 << 16)


@pytest.fixture
def cache(tmp_path):
    before = object_cache.current()
    object_cache.use(ObjectCache(tmp_path / "objects"))
    yield object_cache.current()
    object_cache.use(before)


@pytest.mark.parametrize(("threads", "dtype"), [(1, "float32"), (2, "float64")])
def test_there_is_a_rate_for_each_level_and_a_peak(short, threads, dtype):
    found = measure_ceilings(threads, dtype)
    names = [*(level.name for level in resolve("cpu").caches), "memory"]
    assert [name for name, _ in found.reads] == names
    assert all(rate > 0 for _, rate in found.reads)
    assert found.peak_gflops > 0
    assert (found.threads, found.dtype, found.provenance.kind) == (threads, dtype, "measured")
    assert Ceilings.from_json(found.to_json()) == found


def test_a_worker_measures(monkeypatch):
    class Answers:
        def call(self, entry, params, timeout_s):
            assert (entry, params) == ("ceilings", {"threads": 2, "dtype": "float32"})
            return type("Outcome", (), {"unwrap": lambda self, operation: made().to_json()})()

    assert remote_ceilings(Answers(), 2) == made()


def test_threads_divide_a_shared_cache_and_no_set_fits_in_a_nearer_one():
    levels = [CacheLevel("L1d", 32 << 10, 64, 1), CacheLevel("L2", 512 << 10, 64, 1),
              CacheLevel("L3", 16 << 20, 64, 4)]  # fmt: skip
    one, four = dict(working_sets(1, levels)), dict(working_sets(4, levels))
    assert (one["L1d"], one["L2"]) == (four["L1d"], four["L2"])
    assert one["L3"] == 2 * four["L3"]
    for sets in (one, four):
        assert 32 << 10 < sets["L2"] < 512 << 10 < sets["L3"]
    assert 4 * four["memory"] >= 4 * (16 << 20)


def test_without_caches_there_is_memory():
    assert [name for name, _ in working_sets(1, [])] == ["memory"]


def test_a_kernel_that_passes_twice_adds_everything_twice():
    count = granularity()
    once, twice = (stream("1:0", count, passes=passes) for passes in (1, 2))
    data = np.arange(count, dtype=np.float32)
    sums = []
    for kernel in (once, twice):
        out = np.zeros(kernel.params[-1].static_shape, np.float32)
        kernel(data, out)
        sums.append(out.sum())
    assert sums == [data.sum(), 2 * data.sum()]


def test_the_bound_is_the_roof_at_an_intensity():
    found = Ceilings(1, "float32", 100.0, (("L1d", 200.0), ("memory", 10.0)))
    assert [found.bound_gflops(x) for x in (0.5, 10.0, 50.0)] == [5.0, 100.0, 100.0]
    assert found.bound_gflops(0.25, "L1d") == 50.0


def test_what_is_kept_is_found_again(cache):
    keep_ceilings(made(), now=lambda: 1000.0)
    assert known_ceilings(2, now=lambda: 1001.0) == made()
    assert known_ceilings(1, now=lambda: 1001.0) is None
    assert known_ceilings(2, "float64", now=lambda: 1001.0) is None
    assert cache.size() == (0, 0)  # it is no object


@pytest.mark.parametrize("now", [999.0, 1000.0 + KEPT_S])
def test_what_is_old_or_from_the_future_is_not_used(cache, now):
    keep_ceilings(made(), now=lambda: 1000.0)
    assert known_ceilings(2, now=lambda: now) is None


def test_nothing_is_kept_without_a_cache():
    keep_ceilings(made())
    assert known_ceilings(2) is None


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_a_folder_that_others_may_write_is_not_read(cache):
    keep_ceilings(made(), now=lambda: 1000.0)
    cache.folder.chmod(0o777)
    assert known_ceilings(2, now=lambda: 1001.0) is None


def test_a_changed_digit_is_noticed():
    text = ceilings_text(made(), 1000.0)
    assert read_ceilings(text, 2, "float32", 1001.0) == made()
    assert read_ceilings(text.replace("120.5", "920.5"), 2, "float32", 1001.0) is None


@pytest.mark.parametrize(
    "provenance", [Provenance("simulated", "here"), Provenance("measured", "another processor")]
)
def test_what_was_not_measured_here_is_not_used(provenance):
    text = ceilings_text(replace(made(), provenance=provenance), 1000.0)
    assert read_ceilings(text, 2, "float32", 1001.0) is None


@pytest.mark.parametrize(
    "data",
    [
        None, [], {}, {**made().to_json(), "threads": 0},
        {**made().to_json(), "threads": True}, {**made().to_json(), "reads": []},
        {**made().to_json(), "peak_gflops": -1.0}, {**made().to_json(), "peak_gflops": True},
        {**made().to_json(), "reads": [["L1d"]]}, {**made().to_json(), "dtype": "int8"},
        {**made().to_json(), "provenance": None},
    ],
)  # fmt: skip
def test_what_are_no_ceilings_is_refused(data):
    with pytest.raises(ValueError, match=r"machine|rate|level|object|kind"):
        Ceilings.from_json(data)
