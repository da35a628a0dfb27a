"""Sizes at which notebooks take less time: for their tests, and for the documentation in CI."""

SMALLER = {
    "01_quickstart.ipynb": {"n = 1024": "n = 256", "trials=48": "trials=8"},
    "03_autotuning.ipynb": {
        "trials=64, seed=0, db": "trials=20, seed=0, db",
        "trials=64, tuner=tuner": "trials=20, tuner=tuner",
        "seeds=4": "seeds=2",
    },
    "04_gpu.ipynb": {"n = 4096": "n = 256"},
    "05_accelerator.ipynb": {"rows, columns, inner = 64, 8, 16": "rows, columns, inner = 16, 8, 4"},
    "06_fusion.ipynb": {"budget_s=1.0": "budget_s=0.01", "resnet(50)": "resnet(50, image=32)"},
    "07_models.ipynb": {"trials=16": "trials=3", "budget_s=3.0": "budget_s=0.01"},
}
"""By notebook, what stands in one of its cells -> what is run instead."""
