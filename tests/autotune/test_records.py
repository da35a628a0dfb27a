"""Records as JSON, and what is refused in their place."""

import copy
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcompiler.autotune import OUTCOMES, Result
from dlcompiler.autotune.records.record import Record, read_line, target_key, write_line
from dlcompiler.errors import TuningError
from dlcompiler.target import resolve
from dlcompiler.target.accelerators.vta import VtaConfig, vta
from tests.autotune.conftest import make_record


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_record_survives_json(record, outcome):
    written = record(outcome=outcome)
    assert read_line(json.dumps(written.to_json())) == written


@pytest.mark.parametrize("moment", ["", "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05.678Z"])
def test_when_a_record_was_measured(record, moment):
    assert read_line(write_line(record(measured_at=moment))).measured_at == moment


def test_a_message_of_anything_can_be_stored_and_read(record):
    said = record(outcome="crashed", result=Result("crashed", (), "\udcff said" + "x" * 200_000))
    message = read_line(write_line(said)).result.message
    assert message.startswith("? said")
    assert len(message) == 100_000


def test_equal_records_have_equal_keys(record):
    assert record().key() == record().key()
    assert record(trial=1).key() != record(trial=2).key()


def test_a_result_has_a_median_and_a_spread(record):
    assert record().result.seconds == 0.5
    assert record().result.spread_s == 0.125
    assert record(outcome="crashed").result.seconds is None


BAD = [
    ("schema", None, "no known schema"),
    ("schema", True, "no known schema"),
    ("schema", 3, "newer version"),
    ("workload", {"op": 3}, "not a workload"),
    ("target", 3, "target is missing or not a text"),
    ("target", "\ud800", "target is missing or not a text"),
    *(
        ("measured_at", wrong, "measured_at is not a date and time of UTC")
        for wrong in (
            "yesterday",
            "2026-01-02",
            "2026-13-02T03:04:05+00:00",
            "2026-01-02T03:04:05",
            "2026-01-02T03:04:05+01:00",
            "2026-01-02T03:04:05+00:00\n",
            "\x1b[2J",
        )
    ),
    ("measured_at", 3, "measured_at is missing or not a text"),
    ("config", {"values": {"tile": 1.5}, "fingerprint": ""}, "not a config"),
    ("outcome", "fine", "not an outcome"),
    ("outcome", "crashed", "samples stand with the outcome 'ok'"),
    ("samples_s", [], "samples stand with the outcome 'ok'"),
    ("samples_s", None, "not a list"),
    ("samples_s", [0.0], "not a positive number"),
    ("samples_s", [True], "not a positive number"),
    ("samples_s", ["1"], "not a positive number"),
    ("samples_s", [10**400], "not a positive number"),
    ("trial", -1, "trial is missing or not a number"),
    ("trial", 2**63, "trial is missing or not a number"),
    ("trial", True, "trial is missing or not a number"),
    ("message", "x" * 200_000, "message is missing or not a text"),
    ("origin", "luck", "not an origin"),
    ("round", -1, "round is missing or not a number"),
    ("predicted_s", -1.0, "predicted_s is missing or not a number of seconds"),
    ("elapsed_s", 1e400, "elapsed_s is missing or not a number of seconds"),
    ("is_noisy", 0, "is_noisy is neither true nor false"),
    ("run", None, "run is missing or not a text"),
]


@pytest.mark.parametrize(("field", "value", "problem"), BAD, ids=[f"{b[0]}:{b[2]}" for b in BAD])
def test_what_is_not_a_record_is_refused(record, field, value, problem):
    data = copy.deepcopy(record().to_json())
    data[field] = value
    with pytest.raises(TuningError, match=problem):
        Record.from_json(data)


def test_a_missing_field_is_told(record):
    for field in record().to_json():
        data = record().to_json()
        del data[field]
        with pytest.raises(TuningError):
            Record.from_json(data)


@pytest.mark.parametrize("line", ["", "{", "[]", "3", "null", "NaN", '{"samples_s": [NaN]}'])
def test_lines_that_are_no_records(line):
    with pytest.raises(TuningError, match="read a record"):
        read_line(line)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e400", "-1.0"])
def test_numbers_that_are_no_times(record, number):
    line = json.dumps(record().to_json()).replace("0.25", number)
    with pytest.raises(TuningError):
        read_line(line)


def test_a_line_of_autotvm_is_told():
    line = {"input": ["llvm", "matmul", [], {}], "config": {}, "result": [[1], 0, 1, 1]}
    with pytest.raises(TuningError, match="a line of AutoTVM, which"):
        Record.from_json(line)


def test_a_deep_line_is_refused():
    with pytest.raises(TuningError, match="read a record"):
        read_line("[" * 100_000)


def test_the_error_says_what_was_expected(record):
    data = {**record().to_json(), "schema": 7}
    with pytest.raises(TuningError) as error:
        Record.from_json(data)
    assert str(error.value) == (
        "read a record: written by a newer version of dlcompiler\n"
        "  got       schema 7\n"
        "  expected  schema 2 or older"
    )


def test_machines_with_other_threads_or_features_are_kept_apart():
    one, other = resolve("x86-64-avx2"), resolve("x86-64-sse2")
    assert len({target_key(one, 1), target_key(one, 2), target_key(other, 1)}) == 3


def test_accelerators_of_one_name_are_kept_apart_by_their_parts():
    configs = [{}, {"profile": "A"}, {"dram_latency": 64}, {"LOG_INP_BUFF_SIZE": 14}]
    made = [vta("vta", VtaConfig(**each)).target for each in configs]
    assert len({target_key(target, 1) for target in made}) == len(made)
    assert target_key(made[0], 1) == target_key(vta("vta", VtaConfig()).target, 1)


def test_devices_that_are_no_cpus_are_kept_apart_by_name():
    one = replace(resolve("c"), name="npu", device="npu")
    keys = {target_key(target, 1) for target in (resolve("c"), one, replace(one, name="npu2"))}
    assert len(keys) == 3
    assert target_key(resolve("h100"), 1) != target_key(resolve("h200"), 1)


# -- whatever a file holds ----------------------------------------------------------------------

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(field=st.sampled_from(sorted(make_record().to_json())), value=ANYTHING, data=st.data())
def test_a_record_with_anything_in_a_field_is_read_or_refused(field, value, data):
    written = make_record().to_json()
    where = written
    if isinstance(written[field], dict) and data.draw(st.booleans()):
        where = written[field]
        field = data.draw(st.sampled_from(sorted(where)))
    where[field] = value
    try:
        read = read_line(json.dumps(written))
    except TuningError:
        return
    assert read_line(write_line(read)) == read


@given(text=st.text(max_size=40) | st.binary(max_size=40).map(repr))
def test_a_line_of_anything_is_refused(text):
    with pytest.raises(TuningError):
        read_line(text)
