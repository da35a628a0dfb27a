"""Output files are written whole or not at all, and never over files that must stay."""

import os
import socket
import sqlite3
import stat
import subprocess
import sys

import pytest

from dlcompiler.errors import TuningError, UserError
from dlcompiler.output_files import (
    REPLACES,
    Rules,
    append_lines,
    check_output,
    make_folder,
    replacing,
    write_file,
)

ASKS = Rules(overwrite=False)


def refusal(path, rules=REPLACES):
    with pytest.raises(UserError) as caught:
        write_file(path, "new", rules)
    return str(caught.value).replace(str(path), "PATH")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_and_replaced(tmp_path):
    path = tmp_path / "out.txt"
    write_file(path, "µ\n")
    assert path.read_bytes() == b"\xc2\xb5\n"
    write_file(str(path), b"\0")
    assert path.read_bytes() == b"\0"
    assert names(tmp_path) == ["out.txt"]


def test_a_new_file_has_the_permissions_of_any_other(tmp_path):
    path, other = tmp_path / "out.txt", tmp_path / "other.txt"
    other.write_text("")
    write_file(path, "")
    assert path.stat().st_mode == other.stat().st_mode
    path.chmod(0o600)
    write_file(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_leave_nothing_is_replaced(tmp_path):
    path = tmp_path / "out.txt"
    write_file(path, "old", ASKS)
    assert refusal(path, ASKS) == (
        "write PATH: the file is there already\n  hint      choose another file, or say --overwrite"
    )
    assert path.read_text() == "old"
    assert names(tmp_path) == ["out.txt"]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "out.txt"

    def write():
        with replacing(path, ASKS) as new:
            new.write_text("new")
            path.write_text("another program's")

    with pytest.raises(UserError, match="the file is there already"):
        write()
    assert path.read_text() == "another program's"
    assert names(tmp_path) == ["out.txt"]


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def write():
        with replacing(path) as new:
            new.write_text("half of the new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_text() == "old"
    assert "cannot be written\n  got       'utf-8' codec can't encode" in refusal_of(path, "\ud800")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["out.txt"]


def refusal_of(path, text):
    with pytest.raises(UserError) as caught:
        write_file(path, text)
    return str(caught.value)


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "records.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize("name", ["", "-wal", "-shm", "-journal"])
def test_a_database_is_never_replaced(database, name):
    before = database.read_bytes()
    path = database.with_name(database.name + name)
    expected = "the name belongs to" if name else "is there, which is never replaced"
    assert expected in refusal(path)
    assert database.read_bytes() == before
    assert names(database.parent) == ["records.db"]
    with pytest.raises(UserError, match="a database of SQLite is there"):
        append_lines(database, ["line"])


def test_only_regular_files_are_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "socket"))
    server.close()
    found = {
        name: refusal(tmp_path / name).splitlines()[0].removeprefix("write PATH: ")
        for name in ("folder", "pipe", "link", "socket")
    }
    assert found == {
        "folder": "a folder is there, which is never replaced",
        "pipe": "a pipe is there, which is never replaced",
        "link": "a device is there, which is never replaced",
        "socket": "a socket is there, which is never replaced",
    }
    assert "a device is there" in refusal("/dev/full")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_the_source_is_not_replaced_by_any_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "source.txt"
    source.write_text("data")
    (tmp_path / "soft").symlink_to("source.txt")
    (tmp_path / "hard").hardlink_to(source)
    (tmp_path / "folder").mkdir()
    for name in ("source.txt", "./source.txt", "folder/../source.txt", "soft", "hard", source):
        assert "the data is read from this file" in refusal(name, Rules(sources=(source,)))
        assert "the data is read from this file" in refusal(source, Rules(sources=(name,)))
    assert "read from this file" in refusal("new.txt", Rules(sources=("folder/../new.txt",)))
    assert source.read_text() == "data"


def test_the_file_that_a_link_leads_to_is_written(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link"
    link.symlink_to("target.txt")
    write_file(link, "first", ASKS)
    assert target.read_text() == "first"
    assert "the file is there already" in refusal(link, ASKS)
    write_file(link, "second")
    assert link.is_symlink()
    assert target.read_text() == "second"


def test_links_in_a_circle_are_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "cannot be written" in refusal(tmp_path / "a")


def test_a_read_only_file_stays(tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anything
    assert refusal(path) == "write PATH: the file that is there may not be written"


def test_names_that_no_file_can_have(tmp_path):
    assert "a null character" in refusal("a\0b")
    assert "cannot be written" in refusal(tmp_path / ("x" * 300))
    assert refusal(tmp_path / "none" / "x").startswith("write PATH: no such folder\n  got")
    (tmp_path / "file").write_text("")
    assert "no such folder" in refusal(tmp_path / "file" / "x")
    assert "a folder is there" in refusal_of("", "")
    write_file(tmp_path / ("x" * 255), "the longest name")
    with pytest.raises(UserError, match=r"make the folder .*: cannot be made\n  got"):
        make_folder(tmp_path / "file" / "folder")


def test_the_kind_of_error_is_the_callers(tmp_path):
    with pytest.raises(TuningError):
        check_output(tmp_path, Rules(error=TuningError))


def test_lines_are_added_after_a_line_that_was_never_finished(tmp_path):
    path = tmp_path / "log"
    append_lines(path, ["one"])
    with path.open("a") as stream:
        stream.write("tor")
    append_lines(path, ["two", "three"])
    assert path.read_text() == "one\ntor\ntwo\nthree\n"
    append_lines(path, [])
    assert path.read_text() == "one\ntor\ntwo\nthree\n"


def test_lines_that_do_not_fit_are_not_added(tmp_path):
    script = """
import resource, sys
from dlcompiler.errors import UserError
from dlcompiler.output_files import append_lines
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for path in sys.argv[1:]:
    try:
        append_lines(path, ["x" * 600, "y" * 600])
    except UserError as error:
        print(error)
"""
    old, new = tmp_path / "old", tmp_path / "new"
    append_lines(old, ["one"])
    done = subprocess.run(
        [sys.executable, "-c", script, str(old), str(new)], capture_output=True, text=True
    )
    assert done.stdout == (
        f"write {old}: cannot be written\n  got       File too large\n"
        f"write {new}: cannot be written\n  got       File too large\n"
    )
    assert old.read_text() == "one\n"
    assert names(tmp_path) == ["old"]
