"""Helpers that need a package are not looked into for examples where it is not installed."""

from importlib.util import find_spec

HELPERS = {
    "mxnet": ["mxnet_models.py"],
    "onnx": ["onnx_cases.py", "onnx_models.py"],
    "tflite": ["tflite_models.py"],
    "flatbuffers": ["tflite_models.py"],
    "torch": ["torch_models.py"],
}
collect_ignore = [
    "files",  # written by programs that need more packages
    "torch_report.py", "torch_samples.py",  # PyTorch's own tests take 10 s to import
    *(name for package, names in HELPERS.items() if find_spec(package) is None for name in names),
]  # fmt: skip
