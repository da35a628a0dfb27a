"""The look at the built documentation finds what it should: `tests/docs_site.py`."""

import pytest

from tests.docs_site import look, open_context, use_axe

PAGE = """<!DOCTYPE html><html lang="en"><title>a page</title><body style="margin: 0">
  <div class="bd-article-container" style="overflow-x: auto">
  <article class="bd-article">{}</article></div></body></html>"""
LONG = "a_name_that_is_much_longer_than_its_box " * 4
CASES = {
    "good": ("<p>text</p><pre style='overflow-x: auto' tabindex='0'>" + "x" * 300 + "</pre>", ""),
    "wide column": ("<div style='width: 900px'>text</div>", "wider than its column"),
    "wide page": ("<div style='position: absolute; width: 900px'>text</div>", "900 px wide"),
    "cut": (f"<p style='overflow: hidden; white-space: nowrap'>{LONG}</p>", "cut: <p style="),
    "no picture": ("<img src='absent.png'>", "no picture: file://"),
    "no name": ("<details><summary><span>&nbsp;</span></summary>text</details>", "summary-name"),
    "outside": ("<img src='https://example.org/a.png'>", "requests https://example.org/a.png"),
}


@pytest.fixture(scope="module")
def problems(browser, tmp_path_factory):
    """What is found on each page, by its name."""
    site, found = tmp_path_factory.mktemp("site"), {name: [] for name in CASES}
    for name, (body, _) in CASES.items():
        (site / f"{name}.html").write_text(PAGE.format(body), encoding="utf-8")
        context = open_context(browser, 400, "light", found[name].append)
        page = context.new_page()
        look(page, site, f"{name}.html", "here", found[name].append)
        if name in {"good", "no name"}:
            use_axe(page, f"{name}.html", "light", found[name].append)
        context.close()
    return found


@pytest.mark.campaign
@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_is_said(name, problems):
    wanted = CASES[name][1]
    if not wanted:
        assert problems[name] == []
    assert any(wanted in problem for problem in problems[name]) == bool(wanted)
