"""What the views say of programs for the threads of a device, beside their picture of a block."""

import pytest

from dlcompiler import te
from dlcompiler.analysis.advice import GPU_RULES
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.gpu_kernels import kernels_of
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.state import Step
from dlcompiler.target import resolve
from dlcompiler.views import loop_table, loop_tree, palette, preview
from dlcompiler.views.loops.nest_scene import nest_scene
from dlcompiler.views.memory.metrics import metrics
from dlcompiler.views.memory.scopes import memory_scopes
from dlcompiler.views.moves.advice import FOR_A_CPU, advice
from dlcompiler.views.render.scene import scene_html
from tests.thread_programs import convolution, softmax, tiled_matmul

V100 = resolve("v100")
CPU = resolve("x86-64-avx2")


def binds(schedule, key, target=V100):
    groups = palette(schedule, key, None, target)["loop"]
    return next((group["items"] for group in groups if group["name"] == "bind"), [])


# -- the loop tree -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["matmul", "convolution", "softmax"])
def test_the_tree_of_a_program_with_barriers(name, golden):
    make = {"matmul": lambda: tiled_matmul(64, vthreads=2), "convolution": convolution,
            "softmax": softmax}[name]  # fmt: skip
    golden(name, loop_table(make()[0]))


def test_loops_of_threads_have_signs():
    tree = loop_tree(tiled_matmul(64, vthreads=2)[0])
    signs = {row["kind"]: row["sign"] for row in tree["rows"] if row["type"] == "loop"}
    assert signs == {
        "blockIdx.y": "▦", "blockIdx.x": "▦", "vthread": "▹", "threadIdx.y": "▸",
        "threadIdx.x": "▸", "serial": "",
    }  # fmt: skip
    texts = [mark.get("text", "") for mark in nest_scene(tree)["marks"]]
    assert "i.outer  × 2  ▦ blockIdx.y" in texts


def test_barriers_stand_where_the_program_has_them():
    tree = loop_tree(tiled_matmul()[0])
    keys = [row["key"] for row in tree["rows"]]
    barriers = [row for row in tree["rows"] if row["type"] == "barrier"]
    assert [keys[keys.index(row["key"]) + 1] for row in barriers] == ["A.shared", "C.local/k.inner"]
    assert {row["parent"] for row in barriers} == {"C.local/k.outer"}
    (host,) = (row for row in tree["rows"] if row["key"] == "C.local/k.outer")
    assert host["label"].endswith(", 2 barriers inside")


def test_what_a_block_computes_together_is_run_once_for_all_threads():
    rows = {row["key"]: row["runs"] for row in loop_tree(tiled_matmul(32, 16, 8)[0])["rows"]}
    blocks, rounds = 4, 4
    assert rows["C.local"] == blocks * 256
    assert rows["A.shared"] == blocks * rounds
    assert rows["A.shared/ax0.ax1.fused.inner"] == blocks * rounds * 256  # 128 of them load


def test_what_a_warp_computes_together_is_run_once_for_its_threads():
    A = te.placeholder((8, 32), name="A")
    B = te.compute((8, 32), lambda i, j: A[i, 31 - j] + 1.0, name="B")
    s = create_schedule(B.op)
    AW = s.cache_read(A, "warp", [B])
    block, y = s[B].split(B.op.axis[0], 4)
    for loop, tag in ((block, "blockIdx.x"), (y, "threadIdx.y"), (B.op.axis[1], "threadIdx.x")):
        s[B].bind(loop, te.thread_axis(tag))
    s[AW].compute_at(s[B], B.op.axis[1])
    s[AW].bind(s[AW].op.axis[1], te.thread_axis("threadIdx.x"))
    rows = {row["key"]: row["runs"] for row in loop_tree(s)["rows"]}
    assert rows["A.warp"] == 8, "a warp for each row"
    assert rows["A.warp/ax1"] == 8 * 32
    _, sizes = memories(s, [A, B])
    assert sizes["warp", "A.warp"][:2] == [128, 8]


def test_a_state_that_owes_something_has_no_barriers_yet():
    s, _ = tiled_matmul()
    stage = next(stage for stage in s.state.stages if stage.name == "A.shared")
    s[stage.tensor].compute_root()
    assert s.obligations
    assert not any(row["type"] == "barrier" for row in loop_tree(s)["rows"])


# -- moves ---------------------------------------------------------------------------------------


def test_a_gpu_offers_thread_axes_for_the_chosen_loop(plain):
    items = binds(plain, "C/i")
    assert [item["text"] for item in items][:2] == ["to blockIdx.x", "to blockIdx.y"]
    assert [item["status"] for item in items] == ["legal"] * 6 + ["illegal"]
    assert items[-1]["reason"] == "v100 has at most 8 iterations on vthread"
    assert not binds(plain, "C/i", None)
    assert not binds(plain, "C/i", CPU)


def test_axes_that_are_refused_alike_are_one_item(plain):
    *_, item = binds(plain, "C/k")
    assert item["text"] == "to blockIdx.x and 3 more"
    assert item["reason"] == "a reduction axis cannot be bound to blockIdx.x"


def test_a_bound_loop_says_so():
    s, _ = tiled_matmul()
    done, refused = binds(s, "C/j.inner")
    assert (done["status"], done["text"]) == ("done", "to threadIdx.x")
    assert done["reason"] == "C.j.inner is bound to threadIdx.x already"
    assert refused["text"] == "to blockIdx.x and 5 more"


def test_a_limit_is_previewed_as_one(plain):
    step = Step("parallel", "C", {"axis": "i"})
    view = preview(plain, step, None, V100)
    assert (view["status"], view["reason"]) == ("illegal", "v100 has no parallel loops")
    assert view["nearest"] is None
    assert preview(plain, step)["status"] == "legal"


# -- memories ------------------------------------------------------------------------------------


def memories(schedule, args, target=V100):
    scene = memory_scopes(schedule, args, target)
    return scene, {(row[0], row[1]): row[2:] for row in scene["table"]["rows"]}


def test_the_memories_of_a_device(parsed):
    s, args = tiled_matmul(64, vthreads=2)
    scene, rows = memories(s, args)
    matrix, half = 64 * 64 * 4, 32 * 64 * 4
    assert rows == {
        ("global", "A"): [matrix, 1, matrix, half, None],
        ("global", "B"): [matrix, 1, matrix, half, None],
        ("global", "C"): [matrix, 1, matrix, 32 * 32 * 4, None],
        ("shared", "A.shared"): [1024, 4, 4096, None, 98_304],
        ("shared", "B.shared"): [1024, 4, 4096, None, 98_304],
        ("local", "C.local"): [4 * 4, 4 * 256, 4 * 4 * 4 * 256, None, 524_288],
    }
    assert "A.shared, B.shared in shared memory (2 KiB of 96 KiB, 2.1%)" in scene["summary"]
    assert parsed(str(scene_html(scene))).find(".//table") is not None


def test_too_much_shared_memory_is_seen():
    s, args = tiled_matmul(256, 16, 256, 4)
    texts = [mark.get("text", "") for mark in memories(s, args)[0]["marks"]]
    assert "each block has its own:" in texts
    assert "✕ 128 KiB, more than the limit of 96 KiB" in texts


def test_a_cpu_has_no_limits_for_threads():
    s, args = tiled_matmul()
    scene, rows = memories(s, args, CPU)
    assert rows["shared", "A.shared"][-1] is None
    assert "1 KiB in use" in scene["summary"]


def test_what_is_not_exact_is_at_most():
    _, rows = memories(*convolution())
    assert rows["global", "D"][3] == "at most 1,600"


def test_a_program_without_threads_on_a_gpu_is_in_global_memory(plain, tensors):
    _, rows = memories(plain, tensors)
    assert {memory for memory, _ in rows} == {"global"}


def test_a_cpu_without_threads_keeps_its_picture_of_caches(plain, tensors):
    assert memory_scopes(plain, tensors, CPU)["table"]["columns"][0] == "level"


# -- what is said of a CPU alone -----------------------------------------------------------------


def test_metrics_of_threads():
    s, args = tiled_matmul(64, vthreads=2)
    texts = {metric["name"]: metric["text"] for metric in metrics(s, args, V100)}
    assert texts == {
        "operations": "524 k operations",
        "memory traffic": "unknown: the cache model is for CPUs, not for threads of a device",
        "at once": "1,024 threads × 1 lane",
    }


def test_rules_for_a_cpu_say_nothing_of_threads():
    s, args = tiled_matmul()
    assert advice(s, args, CPU) == {"rows": [], "summary": FOR_A_CPU}


def test_a_gpu_has_rules_about_kernels():
    s, args = tiled_matmul()
    found = advice(s, args, V100)
    assert found["summary"] == f"1 piece of advice, from {len(GPU_RULES)} rules."
    (row,) = found["rows"]
    assert (row["rule"], row["key"]) == ("too few blocks", "C/i.outer")
    assert row["key"] in {each["key"] for each in loop_tree(s)["rows"]}
    kernels = kernels_of(lower_program(s, args, V100), V100)
    assert advice(s, args, V100, kernels=kernels) == found


def test_advice_on_what_is_no_kernel_says_why(plain, tensors):
    text = advice(plain, tensors, V100)["summary"]
    assert text.startswith("No advice: ")
    assert "outside any thread" in text


def test_symbolic_sizes_have_their_barriers_too():
    n = te.var("n")
    A = te.placeholder((n, 64), name="A")
    B = te.compute((n, 64), lambda i, j: A[i, 63 - j] + 1.0, name="B")
    s = create_schedule(B.op)
    AS = s.cache_read(A, "shared", [B])
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    outer, inner = s[B].split(B.op.axis[1], 32)
    s[B].reorder(inner, outer)
    s[B].bind(inner, te.thread_axis("threadIdx.x"))
    s[AS].compute_at(s[B], inner)
    assert [row["type"] for row in loop_tree(s)["rows"]].count("barrier") == 2


def test_the_heads_of_a_deep_nest_fit_their_boxes():
    scene = nest_scene(loop_tree(convolution(2)[0]))
    marks = scene["marks"]
    boxes = {mark["keys"][0]: mark for mark in marks if mark["shape"] == "rect"}
    heads = [mark for mark in marks if mark.get("role") == "name"]
    assert any("…" in head["text"] and "threadIdx" in head["text"] for head in heads)
    for head in heads:
        box = boxes[head["keys"][0]]
        assert head["x"] + 7.6 * len(head["text"]) <= box["x"] + box["w"] + 7.6, head["text"]
