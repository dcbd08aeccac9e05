"""The house's rules: arrows that run one way, clean text files, commands and links that exist, stages that count."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import yaml

from tools import overview, run_tests

ROOT = Path(__file__).resolve().parents[1]


# ------------------------------------------------------------------------------------------------ who knows whom


def lint_imports(folder: Path) -> subprocess.CompletedProcess:
    command = next(stage for stage in run_tests.STAGES if stage.name == "import contracts").command
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8")


@pytest.fixture
def copy(tmp_path):
    """The library and its contracts, to be spoilt."""
    shutil.copytree(ROOT / "transformer_lib", tmp_path / "transformer_lib")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_arrows_run_one_way():
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("text/__init__.py", "import transformer_lib.parts.recurrent", "text knows nobody"),
        ("parts/recurrent.py", "from transformer_lib.models import NGramModel", "parts know nobody"),
        ("models/ngram.py", "import transformer_lib.evaluation", "models are assembled from parts"),
        ("decoding.py", "import transformer_lib.models", "only through its protocol"),
        ("evaluation.py", "from transformer_lib.parts import recurrent", "only through its protocol"),
        (
            "training/__init__.py",
            "from transformer_lib.models import RecurrentLanguageModel",
            "only through its protocol",
        ),
        ("protocols.py", "import transformer_lib.text", "protocols know nobody"),
        ("show/figures.py", "import transformer_lib.models", "imports no model"),
        ("models/recurrent.py", "import matplotlib.pyplot", "only show loads matplotlib"),
    ],
)
def test_an_arrow_the_wrong_way_is_noticed(copy, module, line, contract):
    with (copy / "transformer_lib" / module).open("a", encoding="utf-8") as file:
        file.write(f"\n{line}  # noqa\n")
    result = lint_imports(copy)
    assert result.returncode != 0
    assert any(contract in line and "BROKEN" in line for line in result.stdout.splitlines()), result.stdout


# ------------------------------------------------------------------------------------------------ clean text files

TEXT = {".py", ".md", ".toml", ".yml", ".txt", ".ipynb", ".json", ""}
FOREIGN = re.compile(r"/(?:home|Users)/\w+/|/(?:root|tmp|work)/\w|[A-Z]:\\\\?Users|site-packages" + "/")


def project_files() -> list[Path]:
    """What belongs to the project: known to git, or new and not ignored. Without git: everything but the ignored."""
    git = shutil.which("git")
    if git and (ROOT / ".git").exists():
        command = [git, "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=True).stdout
        return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    skipped = re.compile(r"(^|/)(\.venv|\.venv-data|build|mutants|artifacts|__pycache__|\.[a-z_]+_cache|\.git)(/|$)")
    return [p for p in ROOT.rglob("*") if p.is_file() and not skipped.search(p.relative_to(ROOT).as_posix())]


def faults_of(path: Path, content: bytes) -> list[str]:
    """What is wrong with a text file of the project."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return ["is not UTF-8"]
    faults = []
    if "\r" in text:
        faults.append("has line ends of another system")
    if text and not text.endswith("\n"):
        faults.append("does not end with a line end")
    if path.suffix == ".py" and "\t" in text:
        faults.append("has tabs")
    found = FOREIGN.search(text)
    if found:
        faults.append(f"names a place on somebody's computer: {found[0]!r}")
    return faults


def test_text_files_are_clean():
    files = [
        path for path in project_files()
        if path.suffix in TEXT and not (path.relative_to(ROOT).parts[0] == "data" and path.suffix in {".txt", ""})
    ]  # fmt: skip
    files.remove(ROOT / "tests/notebooks/test_rules_can_fail.py")  # plants such places, to see them found
    assert len(files) > 30
    wrong = {path.relative_to(ROOT).as_posix(): faults_of(path, path.read_bytes()) for path in files}
    wrong = {name: faults for name, faults in wrong.items() if faults}
    assert not wrong


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"\xff\xfe\n", "UTF-8"),
        (b"a\r\n", "line ends"),
        (b"a", "does not end"),
        (b"\ta\n", "tabs"),
        (("see /ho" + "me/ada/course\n").encode(), "somebody's computer"),
        (("see /tm" + "p/course\n").encode(), "somebody's computer"),
        (("see C:\\Use" + "rs\\me\n").encode(), "somebody's computer"),
    ],
)
def test_an_unclean_file_is_noticed(content, fault):
    assert any(fault in said for said in faults_of(Path("x.py"), content))


# ------------------------------------------------------------------------------------------------ commands and links


def makefile_targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("name", ["README.md", ".ci/run", ".github/workflows/ci.yml"])
def test_every_make_command_that_is_spoken_of_exists(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    spoken = set(re.findall(r"(?:^|`|run: |\n\s*)make ([a-z][a-z-]+)(?=[\s`]|$)", text))
    assert spoken, f"{name} names no command"
    assert spoken <= makefile_targets()


@pytest.mark.parametrize("name", ["README.md", "LICENSE-prose.md"])
def test_every_link_into_the_project_leads_somewhere(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
    inside = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert inside
    missing = [link for link in inside if not (ROOT / link).exists()]
    assert not missing


def test_the_readme_gives_each_chapter_the_minutes_that_the_chapter_gives_itself():
    rows = re.findall(r"\]\((notebooks/\d\d_\w+\.ipynb)\).*\| (\d+) \|$", (ROOT / "README.md").read_text("utf-8"), re.M)
    assert [name for name, _ in rows] == [f"notebooks/{path.name}" for path in sorted(ROOT.glob("notebooks/*.ipynb"))]
    for name, minutes in rows:
        first = "".join(json.loads((ROOT / name).read_text(encoding="utf-8"))["cells"][0]["source"])
        assert f"{minutes} minutes" in first, name


def test_continuous_integration_runs_make_test_on_three_systems_and_weekly():
    text = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    triggers = workflow[True]  # YAML reads the key `on` as a truth value
    assert {"push", "pull_request", "schedule"} <= set(triggers)
    assert len(triggers["schedule"][0]["cron"].split()) == 5 and triggers["schedule"][0]["cron"].split()[4] != "*"
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]["include"]
    assert {entry["os"].split("-")[0] for entry in matrix} == {"ubuntu", "macos", "windows"}
    assert {entry["python"] for entry in matrix} == {"3.11", "3.12", "3.13"}
    assert "make test" in (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()[-1]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no executable bit")
def test_ci_run_can_be_run():
    assert os.access(ROOT / ".ci/run", os.X_OK)


# ------------------------------------------------------------------------------------------------ the test runner


def test_a_stage_that_fails_does_not_stop_the_others_and_is_counted(tmp_path, capfd):
    (tmp_path / "test_some.py").write_text(
        "import pytest\ndef test_a():\n    pass\ndef test_b():\n    assert 0\ndef test_c():\n    pytest.skip()\n",
        encoding="utf-8",
    )
    stages = [
        run_tests.Stage("tests", [*run_tests.PLAIN, str(tmp_path)]),
        run_tests.Stage("bad command", [sys.executable, "-c", "import sys; sys.exit(3)"]),
        run_tests.Stage("good command", [sys.executable, "-c", ""]),
    ]
    outcomes = [run_tests.run(stage, tmp_path) for stage in stages]
    assert [(o.passed, o.failed, o.skipped) for o in outcomes] == [(1, 1, 1), (0, 1, 0), (1, 0, 0)]
    assert run_tests.summary(outcomes).splitlines()[-1].startswith("2 passed, 2 failed, 1 skipped in ")


def test_a_stage_that_found_no_test_or_broke_off_has_failed(tmp_path):
    assert run_tests.counts(tmp_path / "no-report.xml", status=5) == (0, 1, 0)
    report = tmp_path / "report.xml"
    report.write_text('<testsuites><testsuite tests="3" failures="0" errors="0" skipped="1"/></testsuites>', "utf-8")
    assert run_tests.counts(report, status=0) == (2, 0, 1)
    assert run_tests.counts(report, status=2) == (2, 1, 1)


def test_make_test_runs_every_stage_but_the_portability_ones():
    names = [stage.name for stage in run_tests.chosen_stages()]
    assert {"ruff", "import contracts", "unit tests", "shapes", "notebooks", "browser"} <= set(names)
    assert not any(stage.portability for stage in run_tests.chosen_stages())
    assert all(stage.quick for stage in run_tests.chosen_stages(quick=True))
    assert "layout" not in names, "its tests run among the unit tests"
    assert "notebooks, AVX2" in [stage.name for stage in run_tests.chosen_stages(portability=True)]
    with pytest.raises(SystemExit, match="no stage is called nonsense; the stages are ruff"):
        run_tests.chosen_stages(only=["nonsense"])


@pytest.mark.slow
def test_the_stage_shapes_checks_every_shape(tmp_path):
    """Two batches that do not fit together: the annotation says so before any formula does."""
    (tmp_path / "test_one.py").write_text(
        "import pytest, torch\nfrom jaxtyping import TypeCheckError\n"
        "from transformer_lib.parts.recurrent import RNNCell\n\n"
        "def test_a():\n    with pytest.raises(TypeCheckError):\n"
        "        RNNCell(2, 3).step(torch.zeros(2, 3), torch.zeros(5, 3))\n",
        encoding="utf-8",
    )
    shapes = next(stage for stage in run_tests.STAGES if stage.name == "shapes")
    command = [part for part in shapes.command if not part.startswith("tests/")]
    checked = run_tests.Stage("with", [*command, str(tmp_path)])
    unchecked = run_tests.Stage("without", [*run_tests.PLAIN, str(tmp_path)])
    assert run_tests.run(checked, tmp_path).failed == 0
    assert run_tests.run(unchecked, tmp_path).failed == 1


def test_notebooks_are_compared_strictly():
    for stage in run_tests.STAGES:
        if stage.name.startswith("notebooks") and stage.is_pytest:
            assert "--nbval" in stage.command and "--nbval-lax" not in stage.command
            assert stage.command[stage.command.index("--dist") + 1] == "loadscope"


# ------------------------------------------------------------------------------------------------ the README's picture


def test_the_picture_shows_what_the_textbook_calculates():
    assert overview.hidden_states() == [[1, 0], [0.5, 1], [1.25, 1.5], [0.625, 1.75], [0, 1.875]]
    figure, ax = plt.subplots()
    overview.draw_unrolled(ax)
    drawn = {text.get_text() for text in ax.texts}
    plt.close(figure)
    assert {"猫", "は", "魚", "が", "好き", "(0.625, 1.75)"} <= drawn


def test_the_picture_is_described_for_those_who_cannot_see_it():
    picture = re.search(
        r"!\[(.*?)\]\(notebooks/figures/overview\.png\)", (ROOT / "README.md").read_text(encoding="utf-8")
    )
    assert picture and len(picture[1]) > 60
