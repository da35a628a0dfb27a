"""Errors for names of classic TVM that are missing here, each with the reason."""

from __future__ import annotations

import difflib
import importlib.abc
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from dlcompiler.errors import UserError

PACKAGES = {
    "tvm": "dlcompiler.compat.tvm",
    "d2ltvm": "dlcompiler.compat.d2ltvm",
    "vta": "dlcompiler.compat.vta",
}
"""TVM's package -> the package with its names here."""

VENDOR = "GPUs are simulated, and the libraries of their vendors need a real one"
MODELS = "the import of models comes in a later version; relay.testing has some that are built here"
GRAPHS = "tasks of graphs come in a later version"
TUNING = "the second generation of tuners comes in a later version; tvm.autotvm tunes now"
REMOTE = "other machines come in a later version"
NOT_PLANNED = "it is newer than classic TE and not planned"

LATER: dict[str, str] = {
    **dict.fromkeys(("tvm.contrib.cudnn", "tvm.contrib.cublas", "tvm.contrib.cublaslt"), VENDOR),
    **dict.fromkeys(("tvm.relay.frontend", "tvm.contrib.download"), MODELS),
    **dict.fromkeys(
        (
            *("tvm.relay.transform.AnnotateTarget", "tvm.relay.transform.MergeCompilerRegions"),
            "tvm.relay.transform.PartitionGraph",
        ),
        "dlcompiler.graph.passes.partition_for_device does these steps as one",
    ),
    "tvm.contrib.relay_viz": "a module shows itself in a notebook: put it at the end of a cell",
    **dict.fromkeys(
        (
            *("tvm.contrib.debugger", "tvm.relay.vm", "tvm.relay.backend", "tvm.relay.op.strategy"),
            *("tvm.relay.op.register_alter_op_layout", "tvm.relay.op.register_convert_op_layout"),
            *("tvm.relay.op.register_pattern", "tvm.relay.op.contrib"),
        ),
        GRAPHS,
    ),
    **dict.fromkeys(
        ("tvm.relay.quantize", "tvm.relay.qnn"), "quantization comes in a later version"
    ),
    "tvm.relay.testing.inception_v3": (
        "dlcompiler.graph.builders.inception builds one block; the whole comes in a later version"
    ),
    "tvm.auto_scheduler": TUNING,
    **dict.fromkeys(("tvm.autotvm.RPCRunner", "tvm.autotvm.measure.RPCRunner"), REMOTE),
    **dict.fromkeys(
        (
            "tvm.autotvm.task.extract_from_program",
            "tvm.autotvm.task.extract_from_multiple_program",
            "tvm.autotvm.task.topi_integration",
            "tvm.autotvm.register_topi_compute",
            "tvm.autotvm.register_topi_schedule",
            "tvm.autotvm.graph_tuner",
            "tvm.autotvm.apply_graph_best",
            "tvm.autotvm.tophub",
        ),
        GRAPHS,
    ),
    "tvm.contrib.clang": "LLVM generates the code; te.decl_tensor_intrin takes statements",
    "tvm.te.hybrid.build": "here a script is a stage; tvm.build generates its code",
    "tvm.contrib.tedd": "dlcompiler.views and the Explorer draw schedules",
    **dict.fromkeys(("tvm.rpc.connect_tracker", "tvm.rpc.Server", "tvm.micro"), REMOTE),
    **dict.fromkeys(("vta.top", "vta.transform"), "models on VTA come in a later version"),
    **dict.fromkeys(("vta.rpc_server", "vta.exec", "vta.bitstream"), "boards are simulated"),
    **dict.fromkeys(("tvm.relax", "tvm.script", "tvm.meta_schedule", "tvm.s_tir"), NOT_PLANNED),
}
"""Name -> reason why it is missing; names below it are missing for the same reason."""


class MissingName(UserError, AttributeError):  # noqa: N818 - a state of this project
    """A name of TVM is missing here; also an AttributeError, so that ``hasattr`` works."""


class MissingModule(UserError, ImportError):  # noqa: N818 - a state of this project
    """A module of TVM is missing here; also an ImportError."""


def _parts(name: str, known: Iterable[str]) -> tuple[tuple[str, str], dict[str, str]]:
    """Return the parts of the error about a name: (operation, problem), and further lines."""
    head = (f"use {name}", f"{name} is not part of dlcompiler yet")
    planned = next((LATER[prefix] for prefix in _prefixes(name) if prefix in LATER), None)
    if planned is not None:
        return head, {"because": planned}
    parts = {"hint": "docs/COMPAT.md lists the names that are available"}
    public = sorted(word for word in known if not word.startswith("_"))
    close = difflib.get_close_matches(name.rpartition(".")[2], public, n=1)
    if close:
        parts["hint"] = f"did you mean {name.rpartition('.')[0]}.{close[0]}?"
    return head, parts


def _prefixes(name: str) -> list[str]:
    words = name.split(".")
    return [".".join(words[:count]) for count in range(len(words), 0, -1)]


def refuse_name(name: str, known: Iterable[str] = ()) -> NoReturn:
    """Raise the error for a missing name.

    Parameters
    ----------
    name : str
        Name including the classic module: ``"tvm.relay"``.
    known : iterable of str
        Names in the same module, to suggest a similar one.

    Raises
    ------
    MissingName
        Always.
    """
    head, parts = _parts(name, known)
    raise MissingName(*head, **parts)


def reporter(
    module: str, fallback: ModuleType | None = None, renamed: dict[str, Any] | None = None
) -> Callable[[str], Any]:
    """Return a module's ``__getattr__``, which tries a fallback and then raises the error.

    Parameters
    ----------
    module : str
        ``__name__`` of the module.
    fallback : module, optional
        A module whose public names are also names of this module.
    renamed : dict, optional
        More names, with their values.
    """
    classic = classic_name(module)

    def find(name: str) -> Any:
        if name.startswith("__"):  # Names that Python itself looks up.
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if renamed is not None and name in renamed:
            return renamed[name]
        if fallback is not None and name in fallback.__all__:
            return getattr(fallback, name)
        refuse_name(f"{classic}.{name}", vars(sys.modules[module]))

    return find


def classic_name(module: str) -> str:
    """Return the name that classic code has for a module of this package.

    Examples
    --------
    >>> classic_name("dlcompiler.compat.tvm.te")
    'tvm.te'
    """
    return module.removeprefix("dlcompiler.compat.")


class Named:
    """Base of classes whose missing attributes raise an error with TVM's name."""

    classic: str = ""
    """Name of the class in classic TVM."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{self.classic or type(self).__name__} has no attribute {name!r}")
        refuse_name(f"{self.classic}.{name}", dir(type(self)))


class MissingModules(importlib.abc.MetaPathFinder):
    """Import finder, last in the list, that raises an error for missing modules of our packages."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise the error for a missing module of our packages; ignore all others."""
        for classic, ours in PACKAGES.items():
            for prefix in (ours, classic):
                is_ours = sys.modules.get(prefix) is sys.modules.get(ours, self)
                if fullname.startswith(prefix + ".") and is_ours:
                    head, parts = _parts(classic + fullname.removeprefix(prefix), ())
                    raise MissingModule(*head, **parts)
        return None


def watch_imports() -> None:
    """Install the finder that explains missing modules."""
    if not any(isinstance(finder, MissingModules) for finder in sys.meta_path):
        sys.meta_path.append(MissingModules())
