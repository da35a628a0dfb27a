"""Settings of the interpreter while candidates are generated: they come back as they were."""

import gc
import sys
import threading

from dlcompiler.measurement.interpreter import generating_beside


def settings():
    return gc.get_threshold(), sys.getswitchinterval()


def test_settings_come_back_when_the_last_of_overlapping_blocks_ends():
    before = settings()
    is_inside, may_end = threading.Event(), threading.Event()

    def other():
        with generating_beside():
            is_inside.set()
            may_end.wait(10)

    thread = threading.Thread(target=other)
    with generating_beside():
        inside = settings()
        thread.start()
        assert is_inside.wait(10)
    assert inside != before
    assert settings() == inside  # the other block is still open
    may_end.set()
    thread.join()
    assert settings() == before
