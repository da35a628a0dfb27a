"""The command line prints what comes from elsewhere through the function that escapes it."""

import ast

SAFE = {
    "f'{type(error).__name__}: {error}'",  # errors escape what they quote
    "frontend_page()",
    "graph_operator_page()",
    "operator_page()",
    "pass_page()",
    "primitive_page()",
    "f'\\r  cell {index + 1} of {count} '",
    "'\\r' + ' ' * 30 + '\\r'",
}
"""What is printed as it is."""


def _is_safe(argument):
    if isinstance(argument, ast.Constant):
        return True
    text = ast.unparse(argument)
    return text in SAFE or text.startswith("json.dumps(")  # it escapes all but printable ASCII


def test_the_command_line_shows_texts_escaped(sources):
    found = [
        source.at(node)
        for source in sources
        if source.module.startswith("dlcompiler.cli")
        for node in source.nodes
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("print", "sys.stdout.write", "sys.stderr.write")
        and not all(map(_is_safe, node.args))
    ]
    assert not found, "use dlcompiler.terminal.show"
