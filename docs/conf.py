"""Sphinx over the whole checkout: README, ARCHITECTURE, docs/ and the notebooks, run as they stand.

The source folder is the root of the checkout (``make docs``), so that the links between these files
are the same here and on a code host.
"""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent)]
# Sphinx looks for it before the extension that fills it runs.
START_PAGE = HERE.parent / "build/docs/start/static"
START_PAGE.mkdir(parents=True, exist_ok=True)

project = "dlcompiler"
author = "The dlcompiler authors"
copyright = "The dlcompiler authors"
version = release = installed_version("dlcompiler-lab")

root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "notebooks/*.ipynb"]
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "listed_names",
    "start_page",
    "screen_readers",
    "smaller_notebooks",
]

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
# numpydoc gives the types in words, with shapes; where it gives none, the annotation is shown.
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_typehints_format = "short"
toc_object_entries_show_parents = "hide"
autosummary_generate = False  # `listed_names` describes each name on the page of its table
napoleon_numpy_docstring = True
napoleon_google_docstring = False

# Attributes of several classes share a name; our own data stands beside the HTML of an output.
suppress_warnings = ["ref.python", "mystnb.unknown_mime_type"]

html_theme = "pydata_sphinx_theme"
html_title = "dlcompiler"
html_static_path = [str(HERE / "static"), str(START_PAGE)]
html_css_files = ["site.css"]
html_extra_path = ["extra"]
html_context = {"default_mode": "auto"}
html_sidebars = {"docs/index": []}
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "primary_sidebar_end": [],
    "footer_start": ["copyright"],
    "footer_end": [],
    "search_bar_text": "Search, also by names of TVM and Halide",
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_show_copyright = True
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False
