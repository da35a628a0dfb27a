"""Damaged files of every kind: refused with a reason, or read as what they hold."""

import random

import pytest

from tests.file_mutations import damaged, damaged_json
from tests.file_readers import READERS, reader
from tests.fuzz_files import run, try_case

COUNT = 60


@pytest.mark.campaign
@pytest.mark.parametrize("name", [item.name for item in READERS])
def test_damaged_files(name, capsys):
    count, failed = run(name, "suite", range(COUNT))
    assert failed == 0, capsys.readouterr().out
    if count == 0:
        pytest.skip("this kind of file is not made on this machine")


@pytest.mark.parametrize("name", [item.name for item in READERS])
def test_good_files_are_read(name, tmp_path):
    sample = reader(name).make(tmp_path)
    if sample is None:
        pytest.skip("this kind of file is not made on this machine")
    path = tmp_path / f"whole{sample.suffix}"
    for data in (sample.data, sample.inside and sample.inside.pack(sample.inside.text)):
        if data is not None:
            path.write_bytes(data)
            sample.check(data, path)


def test_damage_is_the_same_for_the_same_seed():
    for damage, data in ((damaged, b"abc" * 100), (damaged_json, b'{"a": [1, 2.5, "x"]}')):
        found = [damage(random.Random(seed), data) for seed in range(200)]
        assert found == [damage(random.Random(seed), data) for seed in range(200)]
        assert len(set(found)) > 60


def test_the_campaign_finds_a_raw_error_and_a_wrong_result(tmp_path):
    sample = reader("records").make(tmp_path)

    def raises(changed, path):
        raise OverflowError("raw")

    def loses_lines(changed, path):
        path.write_bytes(changed.partition(b"\n")[0])
        sample.check(changed, path)

    for check, problem in ((raises, "OverflowError: raw"), (loses_lines, "was not read")):
        found = [
            try_case(type(sample)(sample.data, check), tmp_path, f"records:0:{n}") for n in range(5)
        ]
        assert any(problem in text for text in found)
