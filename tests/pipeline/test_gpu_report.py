"""Reports of programs for GPUs: counters, resources, occupancy, each with its source."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import TargetError
from dlcompiler.pipeline import gpu_report
from dlcompiler.pipeline.gpu_report import refuse_too_large
from dlcompiler.runtime import ptxas
from dlcompiler.simulate.gpu.occupancy import occupancy
from dlcompiler.views.cards.gpu_reports import access_sentence
from tests.thread_programs import softmax, staged_copy, tiled_matmul


@pytest.fixture
def without_ptxas(monkeypatch):
    monkeypatch.setattr(gpu_report.ptxas, "why_unavailable", lambda: "no ptxas")


def test_each_number_of_a_report_names_its_source(without_ptxas):
    report = dlc.build(*tiled_matmul(), target="rtx-a6000").report()
    text = str(report)
    assert "counters are simulated on rtx-a6000" in text
    assert "of a thread (estimated: no ptxas)" in text
    assert "launch: 4 blocks of 256 threads" in text
    assert "shared memory: 1,024 bytes of a block" in text
    assert "limited by" in text
    html = report._repr_html_()
    assert "load A.shared" in html
    assert "limited by" in html
    assert repr(report) == "GPUReport(main for rtx-a6000: 1 kernel)"


def test_a_report_as_data(without_ptxas):
    found = dlc.build(*tiled_matmul(), target="rtx-a6000").report().to_dict()
    assert json.loads(json.dumps(found)) == found
    (kernel,) = found["kernels"]
    (load,) = [a for a in kernel["accesses"] if a["name"] == "load A.shared"]
    assert load["conflict_degree"] == 1
    assert kernel["instructions"]["float32 fma"]["most"]["lanes"] == 32**3
    assert kernel["resources"]["source"] == "estimated"
    assert found["counters_from"] == {"kind": "simulated", "on": "rtx-a6000"}


def test_arguments_give_the_sizes_and_the_data():
    n = te.var("n")
    A, at = te.placeholder((n,), name="A"), te.placeholder((n,), "int32", name="at")
    B = te.compute((n,), lambda i: A[at[i]], name="B")
    s = dlc.te.create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], 32)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    f = dlc.build(s, [A, at, B], target="gpu")
    with pytest.raises(dlc.errors.UserError, match="give the values of symbols"):
        f.report()
    size = 96
    array = np.zeros(size, "float32")
    for step, sectors in ((0, 3), (1, 12)):
        places = (np.arange(size) * step).astype("int32")
        counters = f.report(array, places, array).kernels[-1].counters
        (load,) = [a for a in counters.accesses if a.name == "load A"]
        assert (load.is_exact, load.most.sectors) == (True, sectors)


def test_a_program_for_a_cpu_has_no_report():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    f = dlc.build(te.create_schedule(B.op), [A, B], target="cpu")
    with pytest.raises(TargetError) as error:
        f.report()
    assert "only programs for GPUs have a report" in str(error.value)
    assert 'build it for target="gpu"' in str(error.value)


def test_a_kernel_of_which_no_block_fits_is_refused(without_ptxas):
    report = dlc.build(*tiled_matmul(), target="rtx-a6000").report()
    refuse_too_large(report)
    (kernel,) = report.kernels
    needs = replace(kernel.resources, registers=255, source="ptxas for sm_86", note="")
    found = occupancy(report.target, threads=512, registers=255, shared_bytes=0)
    large = replace(report, kernels=(replace(kernel, resources=needs, occupancy=found),))
    with pytest.raises(TargetError) as error:
        refuse_too_large(large)
    assert str(error.value) == (
        "run main_kernel0 on rtx-a6000: no block of it fits\n"
        "  got       255 registers of a thread, 256 threads (ptxas for sm_86)\n"
        "  expected  at most 65,536 registers of a block\n"
        "  because   CUDA C++ Programming Guide 12.9, table 21\n"
        "  hint      bind fewer iterations to threads, or compute smaller tiles"
    )


def test_an_access_in_words(without_ptxas):
    counters = dlc.build(*staged_copy(), target="gpu").report().kernels[0].counters
    words = {access.name: access_sentence(access) for access in counters.accesses}
    assert words["load A"] == (
        "A load from A by a warp moves 2 sectors of 32 bytes; 100% of these bytes are used."
    )
    assert words["load A.shared"] == "A load from A.shared by a warp has no bank conflicts."


@pytest.mark.parametrize("program", [tiled_matmul, softmax], ids=["matmul", "softmax"])
def test_the_estimate_is_near_what_ptxas_finds(program):
    if reason := ptxas.why_unavailable():
        pytest.skip(reason)
    f = dlc.build(*program(), target="rtx-a6000")
    (measured,) = f.report().kernels
    assert measured.resources.source == "ptxas for sm_86"
    estimate = gpu_report.estimate_of(f.program.launches[0])
    assert measured.resources.shared_bytes == estimate.shared_bytes
    assert 0.5 <= estimate.registers / measured.resources.registers <= 2


def test_arguments_that_do_not_fit_are_refused(without_ptxas):
    f = dlc.build(*staged_copy(), target="gpu")
    right, wrong = np.zeros(64, "float32"), np.zeros(65, "float32")
    with pytest.raises(dlc.errors.CallError, match="wrong number of arguments"):
        f.report(right)
    with pytest.raises(dlc.errors.CallError, match=r"argument 1 \(A\)"):
        f.report(wrong, right)
