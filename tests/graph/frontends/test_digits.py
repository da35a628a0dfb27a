"""The trained network that notebook 07 reads."""

from pathlib import Path

import numpy as np
import pytest

from dlcompiler import graph

pytest.importorskip("onnx", reason="onnx is not installed: pip install onnx")

FOLDER = Path(__file__).resolve().parents[3] / "notebooks" / "models"


def test_it_reads_the_digits_of_its_test_as_its_training_program_says():
    kept = np.load(FOLDER / "digits.npz")
    images = (kept["pixels"] / np.float32(16))[:, None]
    module = graph.from_onnx(FOLDER / "digits.onnx", shapes={"image": images.shape})
    right = int((graph.evaluate(module, images).argmax(1) == kept["labels"]).sum())
    assert f"right on {right} of the {len(images)} images" in (FOLDER / "digits.py").read_text()


def test_quantized_it_loses_at_most_one_point():
    kept = np.load(FOLDER / "digits.npz")
    images = (kept["pixels"] / np.float32(16))[:, None]
    module = graph.from_onnx(FOLDER / "digits.onnx", shapes={"image": images.shape})
    first = graph.from_onnx(FOLDER / "digits.onnx", shapes={"image": (32, 1, 8, 8)})
    found = graph.quantize(first, [images[:32]])
    assert min(layer.sqnr_db for layer in found.layers) > 25
    again = graph.quantize(module, [images], report=False).module
    models = [lambda x, m=m: graph.evaluate(m, x) for m in (module, again)]
    assert graph.compare_top1(*models, [images], kept["labels"]).drop <= 1
