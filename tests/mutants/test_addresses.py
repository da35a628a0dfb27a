"""Each mistake names existing code: `Patch` imports the addresses only when the mistake is made."""

import ast
import re
from pathlib import Path

import pytest

from tests.mutants.patching import found

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1] / "dlcompiler"
ADDRESS = re.compile(r"([a-z_]+)(\.[a-z_0-9]+)+(:\w+)?")
"""``arith.region`` or ``arith.region:relax``; `Patch` puts ``dlcompiler.`` before it."""


def _addresses():
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            match = ADDRESS.fullmatch(text) if isinstance(text, str) else None
            if match and (ROOT / match[1]).is_dir():
                yield text


@pytest.mark.parametrize("address", sorted(set(_addresses())))
def test_the_code_of_a_mistake_exists(address):
    found(address)
