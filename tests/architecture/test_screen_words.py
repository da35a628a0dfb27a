"""Phrases that readers of the screen did not understand do not come back."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("dlcompiler", "widgets/dlcompiler_widgets")
PHRASES = {
    "Elsewhere: ": "Changed in another cell or view: ",
    "no single line:": "these instructions belong to the whole function",
    "} of the bound": "measurement.equality.error_text",
    "something to put right": "say what is left to do",
    'nothing more"': "say what is missing",
    " decides by {": "name the features in words: autotune.features.words",
}
"""Phrase -> what stands there now."""


@pytest.mark.parametrize("phrase", PHRASES)
def test_it_is_not_printed(phrase):
    files = [path for folder in FOLDERS for path in (ROOT / folder).glob("**/*.[pj][ys]")]
    assert len(files) > 300
    found = [str(path.relative_to(ROOT)) for path in files if phrase in path.read_text()]
    assert found == [], PHRASES[phrase]
