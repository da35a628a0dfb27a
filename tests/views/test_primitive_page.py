"""The page about primitives is what the primitives say, and a TVM user finds each by its name."""

import re
from pathlib import Path

import pytest

from dlcompiler.schedule.primitives import REGISTRY
from dlcompiler.views.reference.primitive_page import GROUPS, call_of, primitive_page

PAGE = Path(__file__).parents[2] / "docs" / "PRIMITIVES.md"


def sections():
    found = re.split(r"^### ", primitive_page(), flags=re.MULTILINE)[1:]
    return {section.partition("\n")[0]: section for section in found}


def test_the_page_is_up_to_date():
    text = "dlcompiler primitives > docs/PRIMITIVES.md"
    assert PAGE.read_text(encoding="utf-8") == primitive_page(), text


def test_every_primitive_is_on_it_once():
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(REGISTRY)
    assert sections().keys() == set(REGISTRY)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_entry_names_its_words_in_tvm(name):
    assert re.search(r"\bTVM\b", sections()[name])


def test_an_entry_shows_the_call_as_a_user_writes_it():
    assert call_of("split") == "s[C].split(parent, factor=None, nparts=None)"
    assert call_of("reorder") == "s[C].reorder(*axes)"
    assert call_of("cache_read") == "s.cache_read(tensor, scope, readers)"
    assert call_of("compute_group_at") == "g.compute_at(parent, scope)"
