"""What axe-core finds on a page."""

import pytest

SERIOUS = ("serious", "critical")


def violations(page, within="#host", only=()):
    """Return what is serious or critical in a part of a page, in words.

    Parameters
    ----------
    page
        Playwright's.
    within
        CSS of the part.
    only
        Names of the rules to try, all by default; of two colour schemes, the second needs
        ``color-contrast`` only.
    """
    base = pytest.importorskip("axe_playwright_python.base")
    if not page.evaluate("'axe' in window"):
        page.evaluate(base.AXE_SCRIPT)
    options = {"resultTypes": ["violations"], **({"runOnly": list(only)} if only else {})}
    run = "async ([within, options]) => (await axe.run(within, options)).violations"
    return [
        f"{each['id']} ({each['impact']}): {node['html'][:160]} {node['failureSummary'][:300]}"
        for each in page.evaluate(run, [within, options])
        for node in each["nodes"]
        if each["impact"] in SERIOUS
    ]
