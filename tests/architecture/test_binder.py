"""The Binder environment: what repo2docker reads, checked without Docker.

With a ``binder/`` folder repo2docker reads nothing else: not the root's ``pyproject.toml``, and its
default Python is too old for what we need.
"""

import os
import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet


@pytest.fixture
def binder(root):
    return root / "binder"


@pytest.fixture
def project(root):
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


def test_the_python_is_named_and_new_enough(binder, project):
    name, _, number = (binder / "runtime.txt").read_text().strip().partition("-")
    assert name == "python"
    assert SpecifierSet(project["requires-python"]).contains(number)


def test_the_checkout_itself_is_installed_with_extras_that_exist(binder, project):
    (line,) = (binder / "requirements.txt").read_text().split()
    match = re.fullmatch(r"\.\[([\w,-]+)\]", line)
    assert match, line
    extras = project["optional-dependencies"]
    assert set(match[1].split(",")) <= set(extras)
    assert any(Requirement(each).name == "jupyterlab" for each in extras["lab"])


def test_what_runs_when_the_image_is_built_stops_at_an_error(binder):
    path = binder / "postBuild"
    assert os.access(path, os.X_OK)
    text = path.read_text()
    assert text.startswith("#!/bin/bash\n")
    assert "set -euo pipefail" in text


def test_there_is_one_folder_for_binder(root, binder):
    assert binder.is_dir()
    assert not (root / ".binder").exists()
