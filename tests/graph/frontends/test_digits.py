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
