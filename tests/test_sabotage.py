"""The mutation tester's frame: which tests must notice, what counts, what the table says; one small run."""

import json
import os
import shutil

import pytest

from tools import sabotage

REAL_ROOT = sabotage.ROOT
SURVIVOR = {"function": "f", "from": "return a + b", "to": "return a - b"}
EQUIVALENT = [{"module": "transformer_lib/x.py", **SURVIVOR, "reason": "b is always 0"}]


def test_each_module_is_broken_under_the_tests_that_mirror_it():
    assert sabotage.tests_of("transformer_lib/parts/recurrent.py") == ["tests/parts/test_recurrent.py"]
    assert sabotage.tests_of("transformer_lib/models/ngram_counts.py") == ["tests/models/test_ngram.py"]
    assert sabotage.tests_of("transformer_lib/parts/nobody_tests_this.py") == ["tests/parts"]
    assert sabotage.tests_of("transformer_lib/checks.py") == ["tests/test_checks.py"]
    assert sabotage.tests_of("transformer_lib/__init__.py") == ["tests/test_import.py"]
    assert "tests/test_decoding.py" in sabotage.tests_of("transformer_lib/decoding.py")
    everything = sabotage.tests_of("transformer_lib/nothing_mirrors_this.py")
    assert "tests/parts" in everything
    assert not {f"tests/{name}" for name in sabotage.NOT_UNIT_TESTS} & set(everything)


def test_what_draws_and_what_has_no_function_is_left_alone():
    modules = sabotage.modules()
    assert "transformer_lib/parts/recurrent.py" in modules
    assert not any("/show/" in module for module in modules)
    assert "transformer_lib/parts/__init__.py" not in modules


def test_functions_are_named_as_readers_know_them():
    assert sabotage.function_of("transformer_lib.parts.recurrent.xǁLSTMCellǁstep__mutmut_3") == "LSTMCell.step"
    assert sabotage.function_of("transformer_lib.parts.recurrent.x_unroll__mutmut_14") == "unroll"


def test_decorated_functions_are_broken_as_well():
    source = (
        "import functools\n\n\n@functools.cache\n@functools.partial(\n    print\n)\ndef f(a):\n    return a\n\n\n"
        "class A:\n    @property\n    def b(self):\n        return 1\n\n"
        "    @classmethod\n    def c(cls):\n        return 2\n"
    )
    changed = sabotage.undecorated(source)
    assert "f = functools.cache(functools.partial(print)(f))" in changed.splitlines()
    assert "    b = property(b)" in changed.splitlines()
    assert "    @classmethod\n    def c(cls):" in changed and changed.count("@") == 1
    kept = {}
    exec(
        sabotage.undecorated(
            "@str\ndef f():\n    pass\n\n\nclass A:\n    @property\n    def b(self):\n        return 1\n"
        ),
        kept,
    )
    assert isinstance(kept["f"], str) and kept["A"]().b == 1


def test_a_fault_is_told_by_its_lines():
    diff = "# name: survived\n--- a\n+++ a\n@@ -1,2 +1,2 @@\n def f(a, b):\n-    return a + b\n+    return a - b\n"
    assert sabotage.changed_lines(diff) == ("return a + b", "return a - b")


def test_equivalent_faults_do_not_count_and_all_others_do():
    result = {"source": "", "faults": 4, "survivors": [SURVIVOR, {**SURVIVOR, "to": "return None"}]}
    assert sabotage.score(result, "transformer_lib/x.py", EQUIVALENT) == (4, 2, 1)
    assert sabotage.score(result, "transformer_lib/y.py", EQUIVALENT) == (4, 2, 0)
    assert sabotage.share(2, 4, 1) == pytest.approx(2 / 3)
    text = sabotage.table({"transformer_lib/x.py": result}, EQUIVALENT)
    assert "| `transformer_lib/x.py` | 4 | 2 | 1 | 66.7% |" in text
    missed, _, same = text.partition("## Equivalent")
    assert "+ return None" in missed and "+ return a - b" not in missed
    assert "`f`: b is always 0" in same


def test_an_equivalent_fault_needs_a_reason(tmp_path):
    path = tmp_path / "equivalent.toml"
    path.write_text('[[equivalent]]\nmodule = "x"\nfunction = "f"\nfrom = "a"\nto = "b"\nreason = " "\n', "utf-8")
    with pytest.raises(sabotage.SabotageError, match="lacks its reason"):
        sabotage.read_equivalent(path)


def test_the_named_equivalents_really_survived():
    """An entry whose fault does not exist any more, or is noticed by now, is out of date."""
    results = sabotage.read_results()
    for entry in sabotage.read_equivalent():
        survivors = results.get(entry["module"], {}).get("survivors", [])
        assert any(all(entry[part] == one[part] for part in ("function", "from", "to")) for one in survivors), entry


def test_the_table_is_the_one_made_from_the_results_and_reaches_the_target():
    results, equivalent = sabotage.read_results(), sabotage.read_equivalent()
    assert sabotage.TABLE.read_text(encoding="utf-8") == sabotage.table(results, equivalent)
    numbers = [sabotage.score(result, module, equivalent) for module, result in results.items()]
    faults, noticed, same = (sum(column) for column in zip(*numbers))
    assert sabotage.share(noticed, faults, same) >= sabotage.TARGET


def test_after_a_change_of_the_tests_only_what_was_noticed_stays(tmp_path):
    meta = tmp_path / "mutants" / "x.py.meta"
    meta.parent.mkdir()
    meta.write_text(json.dumps({"more": 1, "exit_code_by_key": {"a": 1, "b": 0, "c": 33, "d": None, "e": 36}}), "utf-8")
    assert sabotage.forget("x.py", tmp_path, lambda code: code not in sabotage.NOTICED)
    codes = {"a": 1, "b": None, "c": None, "d": None, "e": 36}
    assert json.loads(meta.read_text("utf-8")) == {"more": 1, "exit_code_by_key": codes}
    assert not sabotage.forget("x.py", tmp_path, lambda code: code == 0)
    assert not sabotage.forget("y.py", tmp_path, lambda code: True)


def test_what_timed_out_on_a_busy_machine_is_tried_once_more_with_more_time(tmp_path):
    meta, project = tmp_path / "mutants" / "x.py.meta", tmp_path / "pyproject.toml"
    meta.parent.mkdir()
    project.write_text("[tool.mutmut]\nsource_paths = []\n", "utf-8")
    for code in (-24, 24, 36, 152):
        meta.write_text(json.dumps({"exit_code_by_key": {"a": 1, "b": code}}), "utf-8")
        assert sabotage.be_patient("x.py", tmp_path)
        assert sabotage.exit_codes("x.py", tmp_path) == {"a": 1, "b": None}
    assert f"timeout_constant = {sabotage.PATIENCE}\n" in project.read_text("utf-8")
    assert not sabotage.be_patient("x.py", tmp_path)


def test_an_unknown_module_gets_one_line(capsys):
    assert sabotage.main(["transformer_lib/nonsense.py"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and "nonsense.py is no module to break; those are: transformer_lib/" in said[0]


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A library of one function, tested well in one place and not at all in the other."""
    (tmp_path / "transformer_lib" / "parts").mkdir(parents=True)
    (tmp_path / "tests" / "parts").mkdir(parents=True)
    for name in ("transformer_lib/__init__.py", "transformer_lib/parts/__init__.py"):
        (tmp_path / name).write_text("", "utf-8")
    (tmp_path / "transformer_lib/parts/sums.py").write_text(
        'def total(a, b):\n    """The sum; not - the difference."""\n    return a + b\n\n\n'
        "def twice(a):\n    return a * 2\n",
        "utf-8",
    )
    (tmp_path / "tests/parts/test_sums.py").write_text(
        "from transformer_lib.parts.sums import total, twice\n\n\n"
        "def test_total():\n    assert total(1, 2) == 3\n\n\ndef test_twice():\n    assert twice(2)\n",
        "utf-8",
    )
    (tmp_path / "pyproject.toml").write_text('[tool.mutmut]\nsource_paths = ["transformer_lib"]\n', "utf-8")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # a few lines need no plugin, and loading them takes long
    monkeypatch.setattr(sabotage, "ROOT", tmp_path)
    monkeypatch.setattr(sabotage, "WORK", tmp_path / "build")
    for name in ("modules", "tests_of", "prepare", "copy_tree"):
        function = getattr(sabotage, name)
        if function.__defaults__:
            changed = tuple(tmp_path if default == REAL_ROOT else default for default in function.__defaults__)
            monkeypatch.setattr(function, "__defaults__", changed)
    return tmp_path


def test_what_is_broken_reads_and_writes_copies_of_the_data(small):
    """Also where an older copy has links in their place, and after a run that spoilt its copies."""
    data, folder = small / "data" / "models", small / "build" / "sums"
    data.mkdir(parents=True)
    (data / "small.json").write_text("kept", "utf-8")
    (data / "small.checkpoint.safetensors").write_text("large, and changing while it is copied", "utf-8")
    (folder / "mutants").mkdir(parents=True)
    (folder / "mutants" / "data").symlink_to(small / "data", target_is_directory=True)
    for _ in range(2):
        sabotage.prepare("transformer_lib/parts/sums.py", folder)
        copied = folder / "mutants" / "data" / "models"
        assert [path.name for path in copied.iterdir()] == ["small.json"]
        assert (copied / "small.json").read_text("utf-8") == "kept"
        assert not [path for path in folder.rglob("*") if path.is_symlink()]
        for path in copied.iterdir():
            path.write_text("spoilt", "utf-8")
        (copied / "more.json").write_text("spoilt", "utf-8")
        assert {path.name: path.read_text("utf-8")[:4] for path in data.iterdir()} == {
            "small.json": "kept",
            "small.checkpoint.safetensors": "larg",
        }


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="mutmut needs a system that can fork")
def test_a_broken_module_that_writes_into_the_data_leaves_the_checkouts_own_alone(small):
    (small / "data").mkdir()
    (small / "data" / "numbers.txt").write_text("7", "utf-8")
    (small / "transformer_lib/parts/sums.py").write_text(
        "from pathlib import Path\n\nDATA = Path(__file__).resolve().parents[2] / 'data'\n\n\n"
        "def note(number, folder=None):\n    folder = folder or DATA\n"
        "    (folder / 'numbers.txt').write_text(str(number))\n    return int((DATA / 'numbers.txt').read_text())\n",
        "utf-8",
    )
    (small / "tests/parts/test_sums.py").write_text(
        "from transformer_lib.parts.sums import note\n\n\n"
        "def test_note(tmp_path):\n    assert note(1, tmp_path) == 7\n    assert (tmp_path / 'numbers.txt').exists()\n",
        "utf-8",
    )
    result = sabotage.sabotage("transformer_lib/parts/sums.py")
    written = {"function": "note", "from": "folder = folder or DATA", "to": "folder = folder and DATA"}
    assert result["faults"] >= 4 and written not in result["survivors"]  # it wrote 1 over the 7 of its copy
    assert (small / "data" / "numbers.txt").read_text("utf-8") == "7"
    assert not (small / "build" / "transformer_lib.parts.sums" / "mutants" / "data").exists()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="mutmut needs a system that can fork")
def test_a_real_run_finds_what_no_test_notices_and_takes_a_better_test_into_account(small):
    module = "transformer_lib/parts/sums.py"
    result = sabotage.sabotage(module)
    assert result["faults"] >= 3
    assert {one["function"] for one in result["survivors"]} == {"twice"}
    assert {"function": "twice", "from": "return a * 2", "to": "return a / 2"} in result["survivors"]

    tests = small / "tests/parts/test_sums.py"
    tests.write_text(tests.read_text("utf-8").replace("assert twice(2)", "assert twice(2) == 4"), "utf-8")
    assert sabotage.sabotage(module)["survivors"] == []

    tests.write_text(tests.read_text("utf-8").replace("== 4", "== 5"), "utf-8")
    shutil.rmtree(small / "build")
    with pytest.raises(sabotage.SabotageError, match="its tests must pass as long as nothing is broken"):
        sabotage.sabotage(module)
