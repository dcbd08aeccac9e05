"""Files that are whole or not there."""

import os

import pytest

from tests.one_line import one_line_error
from transformer_lib.files import whole_file


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_new_file_takes_the_old_ones_place_only_at_the_end(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old", encoding="utf-8")
    with whole_file(path) as partial:
        partial.write_text("ne", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == "old"
        assert partial == tmp_path / "a.txt.partial"  # beside it, on the same disk: the change of place is one act
        partial.write_text("new", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == "new" and names(tmp_path) == ["a.txt"]


def test_folders_are_made_and_a_path_may_be_a_string(tmp_path):
    with whole_file(str(tmp_path / "deep" / "down" / "a.txt")) as partial:
        partial.write_text("new", encoding="utf-8")
    with whole_file(tmp_path / "deep" / "b.txt") as partial:
        partial.write_text("new", encoding="utf-8")
    assert names(tmp_path / "deep") == ["b.txt", "down"] and names(tmp_path / "deep" / "down") == ["a.txt"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError("no"), UnicodeEncodeError("utf-8", "x", 0, 1, "no")])
def test_whatever_breaks_off_the_writing_leaves_the_old_file_and_no_rest(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(error if isinstance(error, type) else type(error)), whole_file(path) as partial:
        partial.write_text("half", encoding="utf-8")
        raise error
    assert path.read_text(encoding="utf-8") == "old" and names(tmp_path) == ["a.txt"]


def test_a_full_disk_leaves_the_old_file_and_no_rest(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old", encoding="utf-8")
    with one_line_error(kind=OSError) as caught, whole_file(path) as partial:
        partial.write_text("half", encoding="utf-8")
        raise OSError(28, "No space left on device", "a long path")
    assert str(caught.value) == (
        "a.txt: could not be written (No space left on device); nothing was changed; choose a folder you may write to"
    )
    assert path.read_text(encoding="utf-8") == "old" and names(tmp_path) == ["a.txt"]


def test_an_error_that_says_already_which_file_is_not_said_twice(tmp_path):
    with one_line_error("inner.txt: could not be written (full)", kind=OSError) as caught:
        with whole_file(tmp_path / "outer.txt"), whole_file(tmp_path / "inner.txt"):
            raise OSError(28, "full")
    assert "outer.txt" not in str(caught.value)
    assert names(tmp_path) == []


def test_a_change_of_place_that_fails_leaves_the_old_file_and_no_rest(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old", encoding="utf-8")

    def refuse(source, target):
        raise PermissionError(13, "Permission denied", str(target))

    monkeypatch.setattr(os, "replace", refuse)
    with one_line_error("a.txt: could not be written (Permission denied)", kind=OSError):
        with whole_file(path) as partial:
            partial.write_text("new", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == "old" and names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("place", ["file/a.txt", "file/deep/a.txt", "folder"])
def test_a_place_that_cannot_be_written_to_is_refused(tmp_path, place):
    """The parent is a file, or the target is a folder."""
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "kept").write_text("kept", encoding="utf-8")
    with one_line_error(place.split("/")[-1], "could not be written (", kind=OSError) as caught:
        with whole_file(tmp_path / place) as partial:
            partial.write_text("new", encoding="utf-8")
    assert str(tmp_path) not in str(caught.value)
    assert names(tmp_path) == ["file", "folder"] and names(tmp_path / "folder") == ["kept"]
    assert (tmp_path / "file").read_text(encoding="utf-8") == "in the way"
