"""``install`` in a process of its own, and the conflict with another package of the name."""

import subprocess
import sys

import pytest

from dlcompiler.compat import install
from dlcompiler.errors import UserError


def _python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100
    )


def test_classic_imports_after_install():
    done = _python(
        "import dlcompiler.compat as c\n"
        "c.install(); c.install()\n"
        "import tvm, d2ltvm, topi, tvm.testing, tvm.topi.nn as nn\n"
        "from tvm import te\n"
        "from tvm.contrib import utils, cc\n"
        "import topi.nn, tvm.contrib.util\n"
        "from topi.util import get_const_tuple\n"
        "from tvm.ndarray import array\n"
        "assert topi.nn is tvm.topi.nn and tvm.contrib.util is utils\n"
        "assert tvm.te is te and topi is tvm.topi and nn.relu\n"
        "import sys; assert 'matplotlib' not in sys.modules and 'llvmlite' not in sys.modules\n"
    )
    assert done.returncode == 0, done.stderr


def test_another_package_of_the_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "tvm", sys.modules["json"])
    with pytest.raises(UserError, match="another package called tvm is imported already"):
        install()
