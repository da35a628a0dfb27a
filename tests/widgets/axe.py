"""What axe-core finds on a page."""

import pytest

SERIOUS = ("serious", "critical")
RUN = """async ([within, options]) => {
  // Axe gives no contrast of words on a gradient: the shadows at the edges of what scrolls.
  const flat = document.head.appendChild(document.createElement("style"));
  flat.textContent = ".dlc-explorer, .dlc-explorer * { background-image: none !important }";
  const { violations } = await axe.run(within, options);
  flat.remove();
  return violations;
}"""


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
    return [
        f"{each['id']} ({each['impact']}): {node['html'][:160]} {node['failureSummary'][:300]}"
        for each in page.evaluate(RUN, [within, options])
        for node in each["nodes"]
        if each["impact"] in SERIOUS
    ]
