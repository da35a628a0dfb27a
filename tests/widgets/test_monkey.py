"""Two rounds of random clicking; ``python -m tests.widgets.monkey`` goes on for ten minutes."""

import pytest

pytest.importorskip("dlcompiler_widgets")
from tests.widgets import monkey


@pytest.mark.campaign(longest=True)
@pytest.mark.parametrize("seed", [0, 1])
def test_random_clicks(contexts, seed):
    place = monkey.Live(contexts, seed)
    try:
        assert monkey.play(place, seed, monkey.ACTIONS_PER_ROUND)
    finally:
        place.close()


def test_a_wrong_page_is_noticed(contexts):
    place = monkey.Live(contexts, 0)
    try:
        place.page.evaluate("document.querySelector('.dlc-loop').remove()")
        with pytest.raises(monkey.Wrong, match="the page shows"):
            monkey.compare(place)
    finally:
        place.close()
