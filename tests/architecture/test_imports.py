"""What may be imported where, beyond the layers that import-linter checks."""

import ast
import json
import subprocess
import sys

import pytest

NOTEBOOK_LIBRARIES = {"anywidget", "ipywidgets", "IPython", "matplotlib"}
MAY_PLOT = {"dlcompiler.compat.d2ltvm.plot"}
HEAVY = {"IPython", "ipywidgets", "llvmlite", "matplotlib", "pandas", "scipy", "xgboost"}


def _loaded_by(statement):
    """Top-level modules that a statement loads in a fresh interpreter."""
    script = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in json.loads(done.stdout)}


def _takes_from_the_root(node, modules):
    """Whether an import reads the facade; ``from dlcompiler import dtypes`` only names a module."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "dlcompiler" and any(
            f"dlcompiler.{alias.name}" not in modules for alias in node.names
        )
    return any(alias.name == "dlcompiler" for alias in node.names)


def test_nothing_inside_imports_the_package_root(core):
    modules = {source.module for source in core}
    found = [
        source.at(node)
        for source in core
        for node, _ in source.imported()
        if source.module != "dlcompiler" and _takes_from_the_root(node, modules)
    ]
    assert not found, "import the module that defines the name, not the package's root"


def test_only_widgets_import_notebook_libraries(core):
    found = [
        f"{source.at(node)}: {name}"
        for source in core
        for node, name in source.imported()
        if name.split(".")[0] in NOTEBOOK_LIBRARIES and source.module not in MAY_PLOT
    ]
    assert not found


def test_importing_dlcompiler_loads_nothing_heavy():
    loaded = _loaded_by("import dlcompiler")
    assert not loaded & HEAVY
    assert "dlcompiler_widgets" not in loaded


def test_importing_the_widgets_loads_neither_llvm_nor_xgboost():
    pytest.importorskip("dlcompiler_widgets", reason="dlcompiler_widgets is not there yet")
    loaded = _loaded_by("import dlcompiler_widgets")
    assert not loaded & {"llvmlite", "xgboost"}


def test_the_folder_of_the_widgets_is_no_package():
    assert "widgets" not in sys.modules, "import dlcompiler_widgets, not widgets.dlcompiler_widgets"


def test_the_facade_shares_no_function_name_with_a_package(root):
    import dlcompiler

    packages = {path.parent.name for path in (root / "dlcompiler").glob("*/__init__.py")}
    public = {name for name in dir(dlcompiler) if not name.startswith("_")}
    shared = {name for name in public & packages if not _is_module(getattr(dlcompiler, name))}
    assert not shared


def _is_module(value):
    return isinstance(value, type(sys))
