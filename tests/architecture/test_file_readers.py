"""Whatever opens or parses a file is in the list of readers, and is damaged by the campaign."""

import ast

from tests.file_readers import NO_CAMPAIGN, READERS

NAMES = {"open", "read_bytes", "read_text", "read_regular", "open_regular", "read_trusted"}
CALLS = {"CDLL", "PyDLL", "decompress", "decompressobj", "fromfile", "memmap", "mmap"}
QUALIFIED = {
    "gzip.open", "json.load", "json.loads", "json_text.parse", "np.fromfile", "np.load",
    "np.loadtxt", "nbformat.read", "os.open", "sqlite3.connect", "tomllib.load",
    "zipfile.ZipFile",
}  # fmt: skip
LAST_WORDS = NAMES | CALLS | {name.rpartition(".")[2] for name in QUALIFIED} | {"parse"}
PARSE = "dlcompiler.json_text"


def _reads(source):
    """Yield the calls of a module that open a file, or parse what one holds."""
    parses = any(name == PARSE for _, name in source.imported())
    for node in source.nodes:
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
        if name not in LAST_WORDS:  # before the text of the call is made, which takes time
            continue
        called = ast.unparse(node.func)
        if (
            called in QUALIFIED
            or name in CALLS
            or (name in NAMES and not _writes(node))
            or (parses and called == "parse")
        ):
            yield node, called


def _writes(call):
    """Whether a file is opened to be written only, or `open` is a method of something else."""
    name = ast.unparse(call.func)
    if name in ("w.open", "self.w.open", "self.open"):
        return True  # a label of LLVM text
    modes = [a.value for a in call.args if isinstance(a, ast.Constant)]
    return name.endswith("open") and any(mode in ("w", "wb", "a", "ab") for mode in modes)


def _short(module):
    return module.removeprefix("dlcompiler.")


def test_every_reader_of_files_is_in_the_list(sources):
    known = {module for item in READERS for module in item.modules} | NO_CAMPAIGN.keys()
    found = [
        f"{source.at(node)}: {called}"
        for source in sources
        if _short(source.module) not in known
        for node, called in _reads(source)
    ]
    assert not found, "give it a campaign in tests/file_readers.py, or say why it needs none"


def test_the_list_names_no_module_that_reads_nothing(sources):
    reading = {_short(source.module) for source in sources if any(_reads(source))}
    listed = {module for item in READERS for module in item.modules}
    assert NO_CAMPAIGN.keys() <= reading
    assert not listed & NO_CAMPAIGN.keys()
    assert listed <= {_short(source.module) for source in sources}


def test_the_check_finds_what_it_should():
    def found(text):
        nodes = list(ast.walk(ast.parse(text)))
        source = type("Source", (), {"nodes": nodes, "imported": lambda self: []})()
        return [called for _, called in _reads(source)]

    for text in (
        "open(path)", "Path(path).read_text()", "json.loads(text)", "gzip.open(path)",
        "ctypes.CDLL(path)", "sqlite3.connect(path)", "path.open('rb')", "np.load(path)",
        "zlib.decompressobj()", "os.open(path, 0)", "json.load(file)", "mmap.mmap(-1, 8)",
    ):  # fmt: skip
        assert found(text), text
    for text in ("path.write_text(x)", "path.open('w')", "w.open(label)", "json.dumps(x)"):
        assert not found(text), text
