"""Names that are not here say so by name; nothing else changes for Python."""

import importlib
import sys

import pytest

from dlcompiler.compat import tvm
from dlcompiler.compat.missing import MissingModule, MissingName
from dlcompiler.compat.tvm import te
from dlcompiler.errors import DLCompilerError


def test_the_text_of_a_missing_name():
    with pytest.raises(MissingName) as caught:
        tvm.micro  # noqa: B018
    assert str(caught.value) == (
        "use tvm.micro: tvm.micro is not part of dlcompiler yet\n"
        "  because   other machines come in a later version"
    )


def test_a_name_nearly_right_is_suggested():
    with pytest.raises(MissingName, match=r"did you mean tvm\.te\.reduce_axis"):
        te.reduce_axes  # noqa: B018


@pytest.mark.parametrize("name", ["micro", "auto_scheduler", "nothing_of_the_kind"])
def test_python_sees_an_absent_attribute(name):
    assert not hasattr(tvm, name)
    with pytest.raises(DLCompilerError, match=f"tvm.{name} is not part of dlcompiler yet"):
        getattr(tvm, name)


@pytest.mark.parametrize(
    "statement",
    [
        "from dlcompiler.compat.tvm.relay import frontend",
        "import dlcompiler.compat.tvm.relay.frontend",
    ],
)
def test_imports(statement):
    text = r"tvm\.relay\.frontend is not part of dlcompiler yet"
    with pytest.raises(MissingModule, match=text) as caught:
        exec(statement)
    assert isinstance(caught.value, ImportError)


def test_other_imports_are_left_alone():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("dlcompiler.nothing")
    assert "tvm" not in sys.modules


def test_objects_name_what_they_lack():
    array = tvm.nd.empty((2,))
    with pytest.raises(MissingName, match=r"tvm\.nd\.NDArray\.handle is not part of dlcompiler"):
        array.handle  # noqa: B018
