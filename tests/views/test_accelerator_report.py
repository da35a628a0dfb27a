"""The report of a program on an accelerator, as a sentence and as a card."""

from dataclasses import replace

import pytest

from dlcompiler.runtime.timing import format_seconds
from dlcompiler.simulate.accelerators.timing.run import time_program
from dlcompiler.views.cards.accelerator_reports import accelerator_report_card
from tests.accelerator_programs import product, toy_product
from tests.static_pictures import pictures_in

HOSTILE = "</p><script>alert(1)</script>"


@pytest.fixture(scope="module")
def report():
    return product().report()


def test_the_sentence_has_cycles_busy_engines_and_the_waits_of_those_that_compute(report):
    total = report.cycles
    load, compute, store = (f"{cycles / total:.0%}" for cycles in report.busy.values())
    wait = f"{report.waits['compute']['load->compute'] / total:.0%}"
    assert str(report) == (
        f"{total:,} cycles (simulated): load busy {load}, compute {compute}, store {store}; "
        f"compute waits {wait} for load"
    )
    assert repr(report) == f"AcceleratorReport({report})"


def test_short_waits_are_not_mentioned(report):
    assert 0 < report.waits["compute"]["store->compute"] < 0.05 * report.cycles
    assert "for store" not in str(report)


def test_the_card_has_rates_beside_their_limits(report):
    facts = dict(accelerator_report_card(report)["facts"])
    time = format_seconds(report.cycles / 100e6)
    assert facts["time"] == f"{time} at 100 MHz (simulated, profile B)"
    assert facts["instructions"] == f"{len(report.runs[0].program)}"
    assert facts["operations"].startswith("131 k of tensor instructions, ")
    assert facts["operations"].endswith(" of the peak of 512")
    assert facts["DRAM"].endswith(" of 8")
    table = dict(accelerator_report_card(report)["tables"])["bytes to and from DRAM"]
    assert sum(row[1] + row[2] for row in table["rows"]) == report.demand.bytes


def test_the_card_shows_the_timeline(report, parsed):
    parsed(report._repr_html_())
    assert len(pictures_in(report._repr_html_())) == 1


def test_all_parts_are_added(report):
    twice = replace(report, runs=report.runs * 2)
    assert twice.cycles == 2 * report.cycles
    assert twice.waits["compute"] == {k: 2 * n for k, n in report.waits["compute"].items()}
    assert twice.demand.bytes == 2 * report.demand.bytes
    assert dict(accelerator_report_card(twice)["facts"])["instructions"].endswith(" in 2 parts")


def test_a_program_of_the_host_only_has_no_picture(report, parsed):
    parsed(replace(report, runs=())._repr_html_())
    assert str(replace(report, runs=())).startswith("0 cycles (simulated): load busy 0%")


def test_an_extrapolated_machine_is_named(report):
    program = report.runs[0].program
    port = replace(program.accelerator.port, latency=99)
    run = time_program(replace(program, accelerator=program.accelerator.with_(port=port)))
    slow = replace(report, runs=(run,))
    assert slow.extrapolated == ("a latency of 99 cycles (measured: 16)",)
    assert "latency of 99" in dict(accelerator_report_card(slow)["facts"])["time"]


def test_hostile_names_are_text(report, parsed):
    parsed(replace(report, name=HOSTILE)._repr_html_())


def test_an_accelerator_of_a_user_has_all_pictures(parsed):
    kernel = toy_product()
    report = kernel.report()
    assert str(report) == (
        "1,418 cycles (simulated): load busy 63%, array 28%, store 8%; "
        "array waits 57% for load, 8% for store"
    )
    point = kernel.roofline().points[0]
    assert point.rate <= kernel.roofline().bound(point)
    for shown in (report, kernel.timeline(), kernel.memories(), kernel.roofline()):
        assert "simulated" in shown._repr_html_()
        parsed(shown._repr_html_())
