"""Install the project into an empty environment and check that it is all there.

Usage: ``try_install.py FOLDER WHEEL`` or ``try_install.py FOLDER --editable CHECKOUT``.
The folder is created; only the base dependencies are installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "dlcompiler": ROOT / "dlcompiler",
    "dlcompiler_widgets": ROOT / "widgets/dlcompiler_widgets",
}
SHIPPED = {".py", ".js", ".css", ".json", ".typed"}

# Runs inside the new environment, from an empty folder; its argument is the list of expected files.
PROBE = """
import importlib, json, pathlib, sys
for package, files in json.loads(sys.argv[1]).items():
    home = pathlib.Path(importlib.import_module(package).__file__).parent
    missing = [name for name in files if not (home / name).is_file()]
    assert not missing, f"{package} in {home} lacks {missing}"
    print(f"{package}: {len(files)} files in {home}")
assert "widgets" not in sys.modules
"""


def main(folder: str, *what: str) -> int:
    """Install `what` into a new environment in `folder`; return 0 if all is there and runs."""
    environment = Path(folder)
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    target = [str(Path(word).resolve()) if Path(word).exists() else word for word in what]
    pip = [python, "-m", "pip", "install", "-qq", "--no-compile"]
    pip += ["--disable-pip-version-check", *target]
    expected = {package: _shipped_files(home) for package, home in PACKAGES.items()}
    elsewhere = environment / "elsewhere"
    elsewhere.mkdir()
    for command in (
        pip,
        [python, "-I", "-c", PROBE, json.dumps(expected)],
        [environment / "bin" / "dlcompiler", "--version"],
        [environment / "bin" / "dlcompiler", "doctor"],
    ):
        status = subprocess.run(command, cwd=elsewhere, check=False).returncode
        if status:
            print(f"failed with status {status}: {' '.join(map(str, command[:4]))} …")
            return 1
    return 0


def _shipped_files(home: Path) -> list[str]:
    return sorted(
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.suffix in SHIPPED and "__pycache__" not in path.parts
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
