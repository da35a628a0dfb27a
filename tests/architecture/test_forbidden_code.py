"""What the sources never do: run text as code, unpickle, start a shell, insert HTML."""

import ast
import re

RUNS_TEXT = {"eval", "exec", "compile", "__import__"}
UNPICKLES = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
SHELLS = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}
WRITERS = {"write_text", "write_bytes", "savefig", "rename", "mkstemp"}
WRITING_MODES = {"w", "wb", "a", "ab", "x", "xb", "r+b", "a+b"}
WRITES_ITS_OWN = {
    "dlcompiler.output_files",
    "dlcompiler.runtime.c_source",  # in a temporary folder of its own
    "dlcompiler.runtime.trust",  # there, what was checked
    "dlcompiler.runtime.libraries",  # there, and what `replacing` gives
    "dlcompiler.autotune.records.jsonl",  # what `replacing` gives
    "dlcompiler.autotune.records.database",  # a new database, linked to its place
    "dlcompiler_widgets.paper",  # what `replacing` gives
}
DANGEROUS_FLAGS = {"shell", "allow_pickle"}

JAVASCRIPT = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|srcdoc"
    r"|\beval\s*\(|new\s+Function\b|\bimport\s*\(|https?://(?!www\.w3\.org/)"
)
STYLE = re.compile(r"@import|https?://|expression\s*\(")


def _calls(source):
    return (node for node in source.nodes if isinstance(node, ast.Call))


def test_no_text_is_run_as_code(sources):
    found = [
        source.at(call)
        for source in sources
        for call in _calls(source)
        if isinstance(call.func, ast.Name) and call.func.id in RUNS_TEXT
    ]
    assert not found


def test_nothing_is_unpickled(sources):
    found = [
        f"{source.at(node)}: {name}"
        for source in sources
        for node, name in source.imported()
        if name.split(".")[0] in UNPICKLES
    ]
    assert not found


def test_no_shell_is_started(sources):
    found = [
        source.at(call)
        for source in sources
        for call in _calls(source)
        if ast.unparse(call.func) in SHELLS or any(_is_dangerous(flag) for flag in call.keywords)
    ]
    assert not found


def test_files_are_written_by_the_module_that_replaces_nothing_by_mistake(sources):
    found = {
        source.at(call)
        for source in sources
        if source.module not in WRITES_ITS_OWN
        for call in _calls(source)
        if isinstance(call.func, ast.Attribute) and _writes(call)
    }
    assert not found, "use dlcompiler.output_files"


def _writes(call):
    name = call.func.attr
    modes = {arg.value for arg in (*call.args, *(k.value for k in call.keywords))
             if isinstance(arg, ast.Constant) and isinstance(arg.value, str)}  # fmt: skip
    return name in WRITERS or (name == "open" and bool(modes & WRITING_MODES))


def _is_dangerous(keyword):
    """Whether a call passes one of the flags as anything but a literal False."""
    is_false = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
    return keyword.arg in DANGEROUS_FLAGS and not is_false


def _matches(root, pattern, expression):
    for path in sorted((root / "widgets").rglob(pattern)):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if expression.search(line):
                yield f"{path.relative_to(root)}:{number}: {line.strip()}"


def test_javascript_inserts_no_html_and_loads_nothing(root):
    found = list(_matches(root, "*.js", JAVASCRIPT))
    assert not found, "use textContent, createElement and createElementNS; load nothing"


def test_styles_load_nothing(root):
    assert not list(_matches(root, "*.css", STYLE))


def test_the_javascript_check_finds_what_it_should():
    for bad in (
        "a.innerHTML = b",
        "eval (x)",
        "import('https://example.org/x.js')",
        "new Function('')",
    ):
        assert JAVASCRIPT.search(bad), bad
    for good in ("createElementNS('http://www.w3.org/2000/svg', 'g')", "node.textContent = name"):
        assert not JAVASCRIPT.search(good), good
