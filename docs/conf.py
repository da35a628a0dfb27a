"""Sphinx over the whole checkout: README, ARCHITECTURE, docs/ and the notebooks, run as they stand.

The source folder is the root of the checkout (``make docs``), so that the links between these files
are the same here and on a code host.
"""

from importlib.metadata import version as installed_version

project = "dlcompiler"
author = "The dlcompiler authors"
copyright = "The dlcompiler authors"
version = release = installed_version("dlcompiler-lab")

root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "notebooks/*.ipynb"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# A notebook is run once for each of its versions; what it measures is of the machine that builds.
nb_execution_mode = "cache"
nb_execution_cache_path = "build/docs-cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
# Widgets are shown by their static fallback: their state would load code from a CDN.
nb_ipywidgets_js = {}
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc gives the types
napoleon_numpy_docstring = True
napoleon_google_docstring = False

# Attributes of several classes share a name; our own data stands beside the HTML of an output.
suppress_warnings = ["ref.python", "mystnb.unknown_mime_type"]

html_theme = "alabaster"
html_theme_options = {
    "description": "Explore how a tensor expression becomes fast code",
    "fixed_sidebar": True,
    "page_width": "1200px",
    "sidebar_width": "240px",
}
html_show_copyright = False
html_copy_source = False
