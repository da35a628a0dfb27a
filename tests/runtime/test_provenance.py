"""Where numbers come from."""

import pytest

from dlcompiler.runtime.provenance import Provenance


def test_it_reads_as_words():
    assert str(Provenance()) == "measured"
    assert str(Provenance("simulated", "v100")) == "simulated on v100"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "not an object"),
        ({"kind": "measured"}, "not an object with kind and on"),
        ({"kind": "guessed", "on": ""}, "the kind is not one of: measured, simulated, predicted"),
        ({"kind": ["measured"], "on": ""}, "the kind is not one of"),
        ({"kind": "measured", "on": 3}, "on is not a text"),
        ({"kind": "measured", "on": "x", "more": 1}, "not an object with kind and on"),
    ],
)
def test_what_is_something_else_is_refused(data, reason):
    with pytest.raises(ValueError, match=reason):
        Provenance.from_json(data)


@pytest.mark.parametrize("kind", ["measured", "simulated", "predicted"])
def test_it_is_read_back(kind):
    given = Provenance(kind, "x")
    assert Provenance.from_json(given.to_json()) == given
