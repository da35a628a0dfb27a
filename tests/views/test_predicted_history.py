"""The predicted time of a state on a GPU, in parts that add up."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dlcompiler.bench import gpu_ladders
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.gpu_kernels import kernels_of
from dlcompiler.target import resolve
from dlcompiler.views import history_tree
from dlcompiler.views.history.predicted import predicted_parts
from dlcompiler.views.history.scene import history_scene

A6000 = resolve("rtx-a6000")


@pytest.fixture(scope="module")
def kernel():
    (found,) = kernels_of(lower_program(*gpu_ladders.shared(256), A6000), A6000)
    return found


def test_parts_add_up(kernel):
    found = predicted_parts([kernel], A6000.name)
    assert json.loads(json.dumps(found)) == found
    assert sum(part["share"] for part in found["parts"]) == pytest.approx(1)
    assert found["seconds"] == kernel.time.seconds
    assert found["parts"][0]["name"] == kernel.time.terms[0].name
    assert found["label"].startswith(f"{found['time']} predicted on rtx-a6000: shared and L1 ")


def test_kernels_run_one_after_the_other(kernel):
    one, two = predicted_parts([kernel], "x"), predicted_parts([kernel, kernel], "x")
    assert two["seconds"] == 2 * one["seconds"]
    assert [part["share"] for part in two["parts"]] == [part["share"] for part in one["parts"]]


def test_a_kernel_without_a_time_makes_the_whole_unknown(kernel):
    assert predicted_parts([kernel, replace(kernel, time=None)], "x") is None
    assert predicted_parts([], "x") is None


def test_rows_and_the_picture_have_it(kernel, plain):
    found = predicted_parts([kernel], A6000.name)
    tree = history_tree(plain.history, A6000.name, {plain.node.id: found})
    (row,) = tree["rows"]
    assert (row["predicted"], row["time"]) == (found, "")
    assert row["label"] == f"create, {found['label']}, current state"
    scene = history_scene(tree)
    assert scene["marks"][-1]["text"] == f"create   {found['time']} predicted"
    assert scene["table"]["rows"][0][3] == found["label"]
