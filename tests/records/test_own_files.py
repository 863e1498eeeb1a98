"""What another account owns or can write to is refused, and no link is followed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.records import own_files
from perfsuite.records.own_files import open_lock, own_python, refuse_foreign, user_cache

STRANGER = 65534

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="it needs root to make files of another account")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the cache is to lie; it is not there yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "perfsuite"


@pytest.mark.parametrize("has_safe_path", [False, True])
@pytest.mark.parametrize(
    "words", [("-m", "json.tool", "-h"), ("-c", "import json, sys; print('usage', sys.argv)", "x")]
)
def test_this_python_imports_nothing_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_safe_path: bool, words: tuple[str, str, str]
) -> None:
    """Also where Python has no option for it."""
    (tmp_path / "json.py").write_text("print('harmed')")
    monkeypatch.setattr(own_files, "_HAS_SAFE_PATH", has_safe_path)
    done = subprocess.run(own_python(*words), cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage")
    assert words[0] == "-m" or done.stdout == "usage ['-c', 'x']\n"


def test_a_cache_of_ones_own_is_taken(cache: Path) -> None:
    assert user_cache() == cache
    cache.mkdir(mode=0o755)
    assert user_cache() == cache
    cache.rename(cache.with_name("elsewhere"))
    cache.symlink_to("elsewhere")
    assert user_cache() == cache


@as_root
@pytest.mark.parametrize("is_link", [False, True])
def test_a_cache_of_another_account_is_refused(cache: Path, is_link: bool) -> None:
    """The owner of the folder, or of the link to it, decides what is run from it."""
    if is_link:
        cache.symlink_to(cache.parent)
    else:
        cache.mkdir()
    os.chown(cache, STRANGER, STRANGER, follow_symlinks=False)
    with pytest.raises(PerfsuiteError, match=rf"perfsuite: belongs to the account {STRANGER}, expected your own \(0\)"):
        user_cache()


def test_a_cache_that_everybody_can_write_is_refused(cache: Path) -> None:
    """The line names the mode, and the command that closes the folder."""
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(PerfsuiteError, match=r"perfsuite: others can write there \(mode 0777\).*chmod go-w"):
        user_cache()


@as_root
def test_a_group_counts_unless_it_is_the_accounts_own(tmp_path: Path) -> None:
    """Accounts whose usual mask lets their own group write are not refused."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o775)
    refuse_foreign(tmp_path / "shared", PerfsuiteError)
    os.chown(tmp_path / "shared", -1, STRANGER)
    with pytest.raises(PerfsuiteError, match="others can write there"):
        refuse_foreign(tmp_path / "shared", PerfsuiteError)


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """What a link leads to is neither made nor emptied."""
    (tmp_path / "precious").write_text("kept")
    for name in ("precious", "absent"):
        (tmp_path / f"{name}.lock").symlink_to(name)
        with pytest.raises(PerfsuiteError, match=rf"{name}.lock: is a link, expected a file of perfsuite's own"):
            open_lock(tmp_path / f"{name}.lock", PerfsuiteError)
    assert (tmp_path / "precious").read_text() == "kept"
    assert not (tmp_path / "absent").exists()


def test_a_lock_that_is_no_file_is_refused(tmp_path: Path) -> None:
    """A pipe is refused without waiting for whoever reads it, and so is a folder."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, told in (("pipe", "is not a file"), ("folder", "cannot be opened")):
        with pytest.raises(PerfsuiteError, match=told):
            open_lock(tmp_path / name, PerfsuiteError)
