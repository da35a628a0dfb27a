"""The picture of simulated caches: the numbers of the simulation, and marks at predictions."""

import json

import pytest

from dlcompiler import te
from dlcompiler.pipeline import lower, simulate_cache
from dlcompiler.pipeline.cache_simulation import simulate_program
from dlcompiler.pipeline.reuse_distances import reuse_distances
from dlcompiler.schedule import create_schedule
from dlcompiler.views.memory.cache_scene import cache_scene
from dlcompiler.views.memory.caches import TensorCounts, by_tensor, predicted_misses
from dlcompiler.views.render.scene import scene_html
from dlcompiler.views.render.units import percent
from tests.simulate.cache.nests import columns
from tests.simulate.cache.programs import level, machine
from tests.static_pictures import pictures_in

SMALL = machine(level(4096, 4), level(1 << 20, 16, name="L2"))


def texts(scene):
    return [mark["text"] for mark in scene["marks"] if "text" in mark]


def test_the_table_has_the_numbers_of_the_simulation(plain, tensors):
    found = simulate_cache(plain, tensors, SMALL)
    rows = cache_scene(found)["table"]["rows"]
    for number, each in enumerate(found.counts()):
        whole = [row for row in rows if row[0] == each.level.name and row[2] == "the program"]
        assert sum(row[3] for row in whole) == each.accesses
        assert sum(row[4] for row in whole) == each.hits
        assert sum(row[5] for row in whole) == each.misses
        assert sum(row[8] for row in whole) == found.written[number].sum()
        inside = [row for row in rows if row[0] == each.level.name and row[2] == "k of C"]
        assert sum(row[5] for row in inside) == found.counts("k")[number].misses


def test_the_summary_says_what_was_simulated(plain, tensors):
    scene = cache_scene(simulate_cache(plain, tensors, SMALL))
    assert scene["summary"].startswith("Simulated: of 1.05 M accesses, 25% miss in L1d, ")
    assert "sample" not in scene["summary"] + scene["how_to_read"]
    cut = cache_scene(simulate_cache(plain, tensors, SMALL, most_accesses=100_000))
    assert cut["summary"].startswith(
        "Simulated: a sample of 98,688 of 1.05 M accesses (first 6 of 64 iterations of i): 25% miss"
    )
    assert "20.5 KiB to and from memory in the sample." in cut["summary"]
    assert "are those of the sample" in cut["how_to_read"]
    assert "of the sample:" in {mark.get("text") for mark in cut["marks"]}


def test_conflicts_that_the_model_does_not_know_are_marked():
    """All elements of a column are in one set, so that none stays; the model has no sets."""
    schedule, args = columns()
    target = machine(level(32768, 8))
    found = simulate_cache(schedule, args, target)
    (tensors,) = by_tensor(found)
    differs = {each.tensor.name: each.differs for each in tensors}
    assert differs == {"A": False, "B": False}, "each line is used once"
    A = te.placeholder((16, 1024), name="A")
    k = te.reduce_axis((0, 16), name="k")
    B = te.compute((64,), lambda j: te.sum(A[k, j], axis=k), name="B")
    found = simulate_cache(create_schedule(B.op), [A, B], target)
    (tensors,) = by_tensor(found)
    counts = {each.tensor.name: each for each in tensors}
    assert counts["A"].counts.misses == 1024, "16 lines take turns in 8 ways"
    assert counts["A"].predicted == 64
    assert counts["A"].differs
    assert "≠ predicted 64, 16 × fewer" in texts(cache_scene(found))


def test_a_prediction_within_the_bound_is_not_marked(plain, tensors):
    found = simulate_cache(plain, tensors, machine(level(1 << 20, 16)))
    assert predicted_misses(found) == {("L1d", each): 256 for each in found.tensors}
    assert not any(each.differs for tensors in by_tensor(found) for each in tensors)
    assert texts(cache_scene(found)).count("predicted 256") == 3


@pytest.mark.parametrize(
    ("predicted", "misses", "differs"),
    [(None, 5, False), (2, 3, False), (3, 2, False), (2, 4, True), (0, 1, True), (0, 0, False)],
)
def test_what_differs(plain, tensors, predicted, misses, differs):
    found = simulate_cache(plain, tensors, SMALL)
    counts = type(found.counts()[0])(found.levels[0], 100, misses)
    assert TensorCounts(found.tensors[0], counts, predicted, ()).differs is differs


def test_a_mark_names_the_loop_with_most_misses(blocked, tensors):
    scene = cache_scene(simulate_cache(blocked, tensors, SMALL))
    bars = [mark for mark in scene["marks"] if mark["role"] == "bar"]
    assert all(mark["keys"] for mark in bars)
    assert any(mark["keys"][0].startswith("C.local/") for mark in bars)


def test_maps_follow_time_and_tensor():
    A = te.placeholder((4096,), name="A")
    B = te.compute((4096,), lambda i: A[i], name="B")
    scene = cache_scene(simulate_cache(create_schedule(B.op), [A, B], SMALL))
    titles = [mark.get("title") for mark in scene["marks"] if mark["role"] == "cell"]
    assert "A, accesses 1 to 8,192 of the program: 256 of 4,096 miss in L1d" in titles
    assert "A, 0 B to 16 KiB: 256 misses in L1d on 256 lines" in titles


def test_marks_lie_in_the_picture_and_all_is_json(blocked, tensors):
    scene = cache_scene(simulate_cache(blocked, tensors, "x86-64-avx2"))
    assert json.loads(json.dumps(scene)) == scene
    for mark in scene["marks"]:
        assert 0 <= mark.get("x", 0) + mark.get("w", 0) <= scene["width"]
        assert 0 <= mark.get("y", 0) + mark.get("h", 0) <= scene["height"]


def grown(tensor, n):
    size = tensor.shape[0]
    return te.compute((64 * (n + 1),), lambda i: tensor[i % size] + 1.0, name=f"T{n}")


def test_of_many_tensors_those_with_most_misses_are_drawn():
    """The table has all of them."""
    tensor = A = te.placeholder((640,), name="A")
    for n in range(9):
        tensor = grown(tensor, n)
    found = simulate_cache(create_schedule(tensor.op), [A, tensor], "x86-64-avx2")
    scene = cache_scene(found)
    bars = {mark["title"].partition(":")[0] for mark in scene["marks"] if mark["role"] == "bar"}
    assert bars == {"T3", "T4", "T5", "T6", "T7", "T8"}
    assert sum(text.startswith("4 other tensors ") for text in texts(scene)) == 3
    whole = [row for row in scene["table"]["rows"] if row[:1] + row[2:3] == ["L1d", "the program"]]
    assert len(whole) == 10


def test_an_empty_program_has_a_picture():
    A = te.placeholder((0,), name="A")
    B = te.compute((0,), lambda i: A[i], name="B")
    scene = cache_scene(simulate_cache(create_schedule(B.op), [A, B], SMALL))
    assert "no access reaches it" in texts(scene)
    assert scene["summary"] == "Simulated: the program accesses no memory."


def test_the_card_is_well_formed(blocked, tensors, parsed):
    found = simulate_cache(blocked, tensors, "x86-64-avx2")
    card = parsed(found._repr_html_())
    assert pictures_in(found._repr_html_())
    assert "simulated on x86-64-avx2" in "".join(card.itertext())
    assert parsed(str(scene_html(cache_scene(found)))).find(".//table") is not None


def test_percent():
    assert [percent(share) for share in (0, 1, 0.25, 0.009, 0.000_012, 0.999_999)] == [
        "0%", "100%", "25%", "0.9%", "0.001%", "99.9999%",
    ]  # fmt: skip


def test_reuse_distances_stand_below_the_maps_with_the_capacities_as_marks(plain, tensors):
    func = lower(plain, tensors, simple_mode=True)
    reuse = reuse_distances(func, SMALL)
    found = simulate_program(func, SMALL)
    scene = cache_scene(found, reuse)
    titles = [mark.get("title", "") for mark in scene["marks"]]
    for each in SMALL.caches:
        assert sum(title.startswith(f"{each.name} holds ") for title in titles) == 1
    counted = dict.fromkeys("ABC", 0)
    for row in scene["table"]["rows"]:
        if row[0].startswith(("reuse distance", "first access")):
            counted[row[1]] += row[3]
    assert counted == {buffer.name: len(d) for buffer, d in reuse.by_tensor.items()}
    bars = [title for title in titles if "have reuse distance" in title]
    assert any(title.startswith("B: ") for title in bars)
    assert "what stands right of a dashed line misses" in scene["how_to_read"]
    sampled = cache_scene(found, reuse_distances(func, SMALL, 9000))
    assert any("sample: " in mark.get("text", "") for mark in sampled["marks"])


def test_a_program_without_accesses_has_no_reuse():
    A = te.placeholder((0, 4), name="A")
    B = te.compute((0, 4), lambda i, j: A[i, j] + 1.0, name="B")
    s = create_schedule(B.op)
    func = lower(s, [A, B], simple_mode=True)
    cache_scene(simulate_program(func, SMALL), reuse_distances(func, SMALL))
