"""Twenty seconds of random clicking; ``python -m tests.widgets.monkey`` goes on for ten minutes."""

import time

import pytest

pytest.importorskip("dlcompiler_widgets")
from tests.widgets import monkey

pytestmark = [pytest.mark.alone, pytest.mark.timeout(180)]

SECONDS = 10


@pytest.mark.parametrize("seed", [0, 1])
def test_random_clicks(browser, seed):
    place = monkey.Live(browser, seed)
    try:
        deadline = time.monotonic() + SECONDS
        assert monkey.play(place, seed, monkey.ACTIONS_PER_ROUND, deadline)
    finally:
        place.close()


def test_a_wrong_page_is_noticed(browser):
    place = monkey.Live(browser, 0)
    try:
        place.page.evaluate("document.querySelector('.dlc-loop').remove()")
        with pytest.raises(monkey.Wrong, match="the page shows"):
            monkey.compare(place)
    finally:
        place.close()
