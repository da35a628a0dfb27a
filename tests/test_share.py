"""The share of cases that a test runs."""

import pytest

from tests import share


@pytest.fixture
def fourth(monkeypatch):
    monkeypatch.setenv(share.VARIABLE, "4")


def test_all_cases_are_run_by_default(monkeypatch):
    monkeypatch.delenv(share.VARIABLE, raising=False)
    assert share.share_of(100) == 100
    assert share.cases_of(range(7)) == list(range(7))


def test_a_share_of_a_count(fourth):
    assert [share.share_of(count) for count in (1, 4, 5, 1000)] == [1, 1, 2, 250]
    assert share.share_of(100, at_least=40) == 40
    assert share.share_of(10, at_least=40) == 10


def test_four_commits_in_a_row_run_each_case_once(fourth, monkeypatch):
    tried = []
    for number in range(4):
        monkeypatch.setattr(share, "commit_number", lambda number=number: number)
        tried += share.cases_of(range(10))
    assert sorted(tried) == list(range(10))


def test_there_is_always_a_case(fourth, monkeypatch):
    monkeypatch.setattr(share, "commit_number", lambda: 3)
    assert share.cases_of("ab") == ["a"]


def test_ci_runs_few_cases_of_the_longest_campaigns(monkeypatch):
    monkeypatch.delenv(share.VARIABLE, raising=False)
    monkeypatch.setenv("CI", "true")
    assert (share.share(), share.share(longest=True)) == (1, share.CI_SHARE)
    monkeypatch.setenv(share.VARIABLE, "1")
    assert share.share(longest=True) == 1


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "many"])
def test_a_setting_that_is_no_number_is_refused(text, monkeypatch):
    monkeypatch.setenv(share.VARIABLE, text)
    with pytest.raises(ValueError, match="expected a whole number from 1 on") as caught:
        share.share()
    assert repr(text) in str(caught.value)
