"""Where the time goes, told by a clock that the test moves."""

import pytest

from dlcompiler.autotune import Result
from dlcompiler.autotune.run.clock import Clock


class Hand:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def hand():
    return Hand()


def test_the_phases_add_up_without_pauses(hand):
    clock = Clock(hand)
    hand.now += 2
    with clock.during("measuring"):
        hand.now += 10
        clock.add(Result("ok", (1.0,), build_s=3, run_s=4))
        with clock.during("searching"):
            hand.now += 1
        hand.now += 2
    with clock.during("paused"):
        hand.now += 50
    phases = clock.phases()
    assert (phases.searching_s, phases.running_s, phases.building_s) == (3, 4, 3)
    assert (phases.waiting_s, phases.paused_s) == (5, 50)
    assert phases.total_s == clock.elapsed_s == 15
    assert phases.own_share == 3 / 15


def test_building_beside_running_costs_nothing(hand):
    clock = Clock(hand)
    with clock.during("measuring"):
        hand.now += 5
        clock.add(Result("ok", (1.0,), build_s=20, run_s=4))
    phases = clock.phases()
    assert (phases.running_s, phases.building_s, phases.waiting_s) == (4, 1, 0)


def test_it_is_read_in_the_middle_and_stands_still_at_the_end(hand):
    clock = Clock(hand)
    clock.go_on_from(7.0)
    with clock.during("measuring"):
        hand.now += 3
        assert clock.elapsed_s == 10
        assert clock.phases().waiting_s == 3
        clock.begin("ended")
        hand.now += 100
    hand.now += 100
    assert clock.elapsed_s == 10
    assert Clock(hand).phases().own_share == 0.0
