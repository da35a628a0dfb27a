"""Pictures of a kernel on a GPU: coalescing, banks, occupancy, waves; each beside its counters."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dlcompiler.bench import gpu_ladders
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.gpu_kernels import kernels_of
from dlcompiler.simulate.gpu.occupancy import occupancy
from dlcompiler.target import resolve
from dlcompiler.views.device.banks import banks_scene, served
from dlcompiler.views.device.coalescing import coalescing_scene, touched
from dlcompiler.views.device.occupancy import occupancy_scene
from dlcompiler.views.device.waves import waves_scene
from dlcompiler.views.render.scene import scene_html
from tests.simulate.gpu.test_requests import transposed
from tests.thread_programs import softmax, staged_copy, tiled_matmul

A6000 = resolve("rtx-a6000")
N = 256
PROGRAMS = {
    "naive": lambda: gpu_ladders.naive(N),
    "shared": lambda: gpu_ladders.shared(N),
    "vectorized": lambda: gpu_ladders.vectorized(N),
    "warp tiles": lambda: gpu_ladders.warp_tiles(N),
    "transposed": lambda: transposed(N),
    "virtual threads": lambda: tiled_matmul(64, 8, 8, vthreads=2),
    "copy": staged_copy,
    "softmax": softmax,
}
_KNOWN = {}


def kernels(name, target=A6000):
    if (name, target.name) not in _KNOWN:
        _KNOWN[name, target.name] = kernels_of(lower_program(*PROGRAMS[name](), target), target)
    return _KNOWN[name, target.name]


def scenes(kernel, target=A6000):
    return [
        coalescing_scene(kernel, target.name), banks_scene(kernel, target.name),
        occupancy_scene(kernel, target, target.name), waves_scene(kernel, target, target.name),
    ]  # fmt: skip


@pytest.mark.campaign
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_picture_is_data_with_a_sentence_and_a_table_and_stays_inside(name):
    for kernel in kernels(name):
        for scene in scenes(kernel):
            assert json.loads(json.dumps(scene)) == scene
            assert scene["summary"].startswith("Simulated on rtx-a6000: ")
            assert all(len(row) == len(scene["table"]["columns"]) for row in scene["table"]["rows"])
            assert len(str(scene_html(scene, is_open=True))) < 60_000
            for mark in scene["marks"]:
                if mark["shape"] == "rect":
                    assert mark["x"] >= 0
                    assert mark["x"] + mark["w"] <= scene["width"] + 0.1
                    assert mark["y"] + mark["h"] <= scene["height"] + 0.1


# -- coalescing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_sectors_of_a_picture_are_those_that_are_counted(name):
    for kernel in kernels(name):
        for request, counters in zip(kernel.requests, kernel.counters.accesses, strict=True):
            if request.space != "global":
                continue
            assert request.site == counters.site
            assert len(touched(request)) == request.sectors
            assert sum(each.used for each in touched(request)) <= request.sectors * 32
            if name not in ("virtual threads", "softmax"):  # there, requests differ in cost
                assert request.sectors == counters.sectors_per_request


def test_a_column_takes_a_sector_for_each_lane():
    (kernel,) = kernels("naive")
    scene = coalescing_scene(kernel, A6000.name)
    assert "load A takes 32 sectors where 4 would do" in scene["summary"]
    rows = {row[0]: row for row in scene["table"]["rows"]}
    assert rows["load A"][3:5] == [32, 4]
    assert rows["load B"][3:5] == [1, 4]
    used = [mark for mark in scene["marks"] if ": 4 are used" in mark.get("title", "")]
    assert len(used) == 65, "32 of A, 32 of C, and one of B"
    assert "C.local/k" not in used[0]["keys"]
    assert "C.local" in used[0]["keys"]


def test_coalesced_accesses_say_so():
    (kernel,) = kernels("shared")
    assert coalescing_scene(kernel, "x")["summary"].endswith(
        "Each access touches as few sectors as it can."
    )


# -- banks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_passes_of_a_picture_are_those_that_are_counted(name):
    for kernel in kernels(name):
        for request, counters in zip(kernel.requests, kernel.counters.accesses, strict=True):
            if request.space != "shared":
                continue
            words = served(request)
            assert len({(each.row, each.bank) for each in words}) == len(words)
            assert max(each.row for each in words) + 1 == request.wavefronts
            if name not in ("virtual threads", "softmax", "copy"):
                degree = request.wavefronts / request.ideal_wavefronts
                assert degree == counters.conflict_degree


def test_a_column_is_in_one_bank_and_padding_spreads_it():
    (kernel,) = kernels("transposed")
    scene = banks_scene(kernel, A6000.name)
    assert "load A.shared takes 32 passes instead of 1" in scene["summary"]
    assert (
        "If rows of A.shared were 1 element longer, its accesses would take 2" in scene["summary"]
    )


def test_without_shared_memory_there_are_no_banks():
    (kernel,) = kernels("naive")
    scene = banks_scene(kernel, A6000.name)
    assert "It uses no shared memory" in scene["summary"]
    assert scene["table"]["rows"] == []


# -- occupancy -------------------------------------------------------------------------------------


def test_the_limit_is_the_shortest_bar():
    (kernel,) = kernels("vectorized")
    scene = occupancy_scene(kernel, A6000, "x")
    assert (
        "2 blocks run at once on a multiprocessor: 16 of 48 warps (33%), limited by registers."
        in (scene["summary"])
    )
    assert "With at most 80 registers, 3 blocks or more would run." in scene["summary"]
    limits = {row[0]: row[3] for row in scene["table"]["rows"]}
    assert limits == {"registers": "yes", "threads": "", "shared memory": "", "blocks": ""}


def test_a_target_without_limits_says_so():
    (kernel,) = kernels("naive")
    unknown = replace(kernel, occupancy=None)
    assert "the occupancy is not known" in occupancy_scene(unknown, A6000, "x")["summary"]
    assert "is not known" in waves_scene(unknown, A6000, "x")["summary"]


def test_a_kernel_that_does_not_fit_says_so():
    (kernel,) = kernels("naive")
    none = occupancy(A6000, threads=1024, registers=200, shared_bytes=0)
    scene = occupancy_scene(replace(kernel, occupancy=none), A6000, "x")
    assert "No block fits on a multiprocessor: registers do not suffice." in scene["summary"]
    waves = waves_scene(replace(kernel, occupancy=none), A6000, "x")
    assert waves["summary"].endswith("; no block fits on a multiprocessor.")


# -- waves -----------------------------------------------------------------------------------------


def test_many_waves_are_drawn_as_few_columns():
    (kernel,) = kernels("naive")
    counters = replace(kernel.counters, blocks=84 * 500 + 3)
    scene = waves_scene(replace(kernel, counters=counters), A6000, "x")
    texts = [mark["text"] for mark in scene["marks"] if mark["shape"] == "text"]
    assert "490 more" in texts
    assert "501" in texts
    assert "the last one fills 4% of its places" in scene["summary"]


def test_too_few_blocks_leave_multiprocessors_idle():
    (kernel,) = kernels("vectorized")
    assert waves_scene(kernel, A6000, "x")["summary"].endswith(
        "Only 4 of 84 multiprocessors have a block: 80 are idle."
    )
