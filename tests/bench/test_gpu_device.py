"""The suite of kernels on a device, on small works; OpenCL is the device."""

import json

import pytest

from dlcompiler.bench import gpu_device
from dlcompiler.bench.gpu_device import Subject, model_of
from dlcompiler.bench.works import parse_work
from dlcompiler.cli import main
from dlcompiler.errors import TargetError
from dlcompiler.target import resolve

pytestmark = pytest.mark.campaign(whole_file=True)


def test_works_are_measured_and_the_order_of_predicted_times_is_judged(opencl, monkeypatch):
    monkeypatch.setattr(gpu_device, "model_of", lambda device: resolve("rtx-3090"))
    texts = {"gemm:32x32x32": "float32", "softmax:8x64": "float32", "gemm:16x32x16": "float16"}
    works = {text: Subject(parse_work(text), dtype) for text, dtype in texts.items()}
    said = []
    document = gpu_device.run_suite(said.append, works, target="opencl", configs=3)
    assert document["failed"] == {}
    json.dumps(document)
    assert document["device"].startswith("measured on")
    for row in document["rows"]:
        assert row["measured"] + sum(row["failed"].values()) in (3, 4)
        assert row["seconds"] > 0
        assert row["peer_s"] is None
        assert row["peer_note"].startswith("torch")
        assert -1 <= row["rank_correlation"] <= 1
    assert "predicted: rank correlation" in said[1]


def test_a_work_that_fails_does_not_end_the_suite(opencl, monkeypatch):
    def broken(*args, **more):
        raise TargetError("measure", "no room")

    monkeypatch.setattr(gpu_device, "measure", broken)
    works = {"softmax": Subject(parse_work("softmax:8x64"))}
    document = gpu_device.run_suite(lambda row: None, works, target="opencl")
    assert document["rows"] == []
    assert document["failed"] == {"softmax": "measure: no room"}


def test_the_model_of_a_device_is_the_longest_name_in_it():
    assert model_of("measured on NVIDIA GeForce RTX 3080 Ti").name == "rtx-3080-ti"
    assert model_of("NVIDIA A100-SXM4-80GB").name == "a100"
    assert model_of("NVIDIA H200").name == "h200"
    assert model_of("Portable Computing Language") is None


def test_without_the_device_the_reason_is_given(monkeypatch, capsys):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert main(["bench", "--suite", "gpu-device", "--device", "mali-t860"]) == 2
    assert "mali-t860" in capsys.readouterr().err
