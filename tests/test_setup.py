"""The set-up: a suitable Python or one clear line, no stamp without a complete installation, pins that agree."""

import importlib.metadata
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tools import lab, setup_environment, setup_pins

ROOT = Path(__file__).resolve().parents[1]
needs_make = pytest.mark.skipif(os.name == "nt" or shutil.which("make") is None, reason="needs make and sh")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pins(text: str) -> list[Requirement]:
    return [Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]


REQUIREMENTS = (ROOT / "requirements.txt").read_text(encoding="utf-8")
WEIGHTS = (ROOT / "requirements-weights.txt").read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------ which Python


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 12, 9), (3, 13, 1)])
def test_a_suitable_python_passes(version):
    setup_environment.check_python(version)


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 8, 18), (3, 10, 13), (3, 14, 0)])
def test_an_unsuitable_python_is_told_which_is_needed(version):
    with pytest.raises(setup_environment.SetupError, match=r"needs Python 3\.11, 3\.12 or 3\.13.*PYTHON=") as caught:
        setup_environment.check_python(version)
    assert "\n" not in str(caught.value)
    assert ".".join(map(str, version)) in str(caught.value)


def test_the_range_of_pythons_is_the_projects():
    allowed = SpecifierSet(PROJECT["requires-python"])
    for minor in range(8, 20):
        inside = setup_environment.OLDEST <= (3, minor) <= setup_environment.NEWEST
        assert (f"3.{minor}.5" in allowed) == inside, f"Python 3.{minor}"


@pytest.fixture
def clone(tmp_path):
    """The files that `make setup` reads, in a folder of their own."""
    (tmp_path / "tools").mkdir()
    for name in ("Makefile", "pyproject.toml", *setup_environment.PINS, "tools/setup_environment.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def make(folder: Path, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHON", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    if path is not None:
        environment["PATH"] = path
    return subprocess.run(
        [shutil.which("make"), *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


def a_program(path: Path, script: str) -> Path:
    path.write_text("#!/bin/sh\n" + script + "\n", encoding="utf-8", newline="\n")
    path.chmod(0o755)
    return path


def tools_only(folder: Path) -> str:
    """A search path with sh and the like, and no Python on it."""
    for name in ("sh", "sed", "printf"):
        if (found := shutil.which(name)) is not None:
            (folder / name).symlink_to(found)
    return str(folder)


@needs_make
def test_make_says_in_one_line_that_no_python_was_found(clone, tmp_path_factory):
    result = make(clone, "setup", path=tools_only(tmp_path_factory.mktemp("path")))
    lines = [line for line in result.stderr.splitlines() if not line.startswith("make")]
    assert result.returncode != 0
    assert len(lines) == 1 and "Python 3.11, 3.12 or 3.13" in lines[0] and "PYTHON=" in lines[0]
    assert not (clone / ".venv").exists()


@needs_make
def test_make_takes_no_other_python_than_the_one_named(clone, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pythons")
    refused = make(clone, "setup", f"PYTHON={folder / 'missing'}")
    assert refused.returncode != 0 and "cannot be run" in refused.stderr
    old = a_program(folder / "old", "echo 'setup: this is Python 3.8.18' >&2; exit 1")
    refused = make(clone, "setup", f"PYTHON={old}")
    assert refused.returncode != 0 and "this is Python 3.8.18" in refused.stderr
    assert not (clone / ".venv").exists()


@needs_make
def test_make_goes_on_to_the_next_python_when_one_does_not_start(clone, tmp_path_factory):
    """A name on the path may be an empty shim, or a Python that is too old."""
    folder = tmp_path_factory.mktemp("pythons")
    path = tools_only(folder)
    a_program(folder / "python3", "exit 127")
    a_program(folder / "python3.11", "exit 1")
    a_program(folder / "python3.12", 'if [ "$1" = "-c" ]; then exit 0; fi; echo "set up by the third: $*"')
    result = make(clone, "setup", path=path)
    assert result.returncode == 0, result.stderr
    assert "set up by the third: tools/setup_environment.py" in result.stdout


@needs_make
def test_make_help_names_every_command():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    result = make(ROOT, "help")
    for command in re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE).group(1).split():
        assert f"make {command} " in result.stdout


# ------------------------------------------------------------------------------------------------ what is installed


@pytest.fixture
def calls(monkeypatch):
    """The commands that a set-up would run; making the environment leaves an interpreter behind, as it really does."""
    made = []

    def pretend(command, what=""):
        made.append([str(part) for part in command])
        if "venv" in command:
            python = Path(setup_environment.python_of(command[-1]))
            python.parent.mkdir(parents=True, exist_ok=True)
            python.touch()
        return 0

    monkeypatch.setattr(setup_environment, "run", pretend)
    monkeypatch.setattr(setup_environment.subprocess, "call", lambda command, **_: 0)
    return made


def test_the_second_time_does_nothing(clone, calls):
    venv = str(clone / ".venv")
    assert setup_environment.set_up(venv, str(clone)) is True
    assert [Path(command[-1]).name for command in calls if "-r" in command] == list(setup_environment.PINS)
    calls.clear()
    assert setup_environment.set_up(venv, str(clone)) is False
    assert calls == []


@pytest.mark.parametrize("trouble", [KeyboardInterrupt, setup_environment.SetupError])
def test_an_interrupted_installation_leaves_no_stamp_and_is_gone_on_with(clone, calls, trouble, monkeypatch):
    venv = str(clone / ".venv")
    setup_environment.set_up(venv, str(clone))
    with (clone / "requirements.txt").open("a", encoding="utf-8") as file:
        file.write("another==1.0\n")

    def broken(command, what):
        raise trouble("stopped")

    with monkeypatch.context() as patch, pytest.raises(trouble):
        patch.setattr(setup_environment, "run", broken)
        setup_environment.set_up(venv, str(clone))
    assert setup_environment.read_stamp(venv) is None
    assert not setup_environment.is_ready(venv, str(clone))
    assert setup_environment.set_up(venv, str(clone)) is True


@pytest.mark.parametrize(
    ("name", "old", "new", "ready"),
    [
        ("requirements.txt", "torch==2.13.0", "torch==2.13.1", False),
        ("requirements-weights.txt", "l6-v2==0.1.0", "l6-v2==0.1.1", False),
        ("pyproject.toml", '"tqdm",', '"tqdm",\n  "rich",', False),
        ("pyproject.toml", "line-length = 120", "line-length = 100", True),
    ],
)
def test_only_what_an_installation_depends_on_asks_for_a_new_one(clone, calls, name, old, new, ready):
    venv = str(clone / ".venv")
    setup_environment.set_up(venv, str(clone))
    text = (clone / name).read_text(encoding="utf-8")
    assert old in text
    (clone / name).write_text(text.replace(old, new), encoding="utf-8", newline="\n")
    assert setup_environment.is_ready(venv, str(clone)) is ready


def test_a_moved_folder_another_python_or_a_vanished_interpreter_ask_for_a_new_one(clone, calls, tmp_path_factory):
    venv = str(clone / ".venv")
    setup_environment.set_up(venv, str(clone))
    assert setup_environment.is_ready(venv, str(clone))
    assert not setup_environment.is_ready(venv, str(clone), version=(3, sys.version_info[1] + 1, 0))
    moved = tmp_path_factory.mktemp("moved") / "course"
    shutil.copytree(clone, moved)
    assert not setup_environment.is_ready(str(moved / ".venv"), str(moved))
    os.remove(setup_environment.python_of(venv))
    assert not setup_environment.is_ready(venv, str(clone))


def test_a_damaged_stamp_counts_as_none(clone, calls):
    venv = clone / ".venv"
    setup_environment.set_up(str(venv), str(clone))
    (venv / setup_environment.STAMP).write_text("{", encoding="utf-8")
    assert not setup_environment.is_ready(str(venv), str(clone))


def test_a_folder_that_is_no_environment_is_left_alone(clone):
    (clone / ".venv").mkdir()
    (clone / ".venv" / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(setup_environment.SetupError, match="no Python environment: move it away"):
        setup_environment.make_venv(str(clone / ".venv"))
    assert (clone / ".venv" / "thesis.txt").read_text(encoding="utf-8") == "mine"


def test_a_step_that_fails_ends_in_one_line(capfd):
    with pytest.raises(setup_environment.SetupError, match="installing did not finish.*run the same command again"):
        setup_environment.run([sys.executable, "-c", "import sys; sys.exit(3)"], "installing")


# ------------------------------------------------------------------------------------------------ the pins agree


def test_requirements_are_exact_pins_and_name_nothing_that_torch_brings():
    seen = set()
    for requirement in pins(REQUIREMENTS + WEIGHTS):
        assert re.fullmatch(r"==[0-9][0-9a-z.]*", str(requirement.specifier)), f"{requirement}: not one plain version"
        assert requirement.name not in seen, f"{requirement.name} stands there twice"
        assert not setup_pins.BROUGHT_BY_TORCH.match(str(requirement)), requirement.name
        seen.add(requirement.name)


def test_requirements_pin_everything_that_the_project_asks_for():
    pinned = {requirement.name: requirement.specifier for requirement in pins(REQUIREMENTS)}
    for line in PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]:
        wanted = Requirement(line)
        assert wanted.name in pinned, f"{wanted.name} has no pin: run make pins"
        version = str(pinned[wanted.name]).removeprefix("==")
        assert version in wanted.specifier, f"{wanted}: the pin is {version}"


def test_requirements_pin_what_their_packages_ask_for_in_turn():
    """No pin is missing for this system: everything that an installed pin depends on is pinned, or comes with torch."""
    pinned = {requirement.name.lower().replace("_", "-") for requirement in pins(REQUIREMENTS)}
    for requirement in pins(REQUIREMENTS):
        if requirement.marker and not requirement.marker.evaluate():
            continue
        for line in importlib.metadata.requires(requirement.name) or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                name = needed.name.lower().replace("_", "-").replace(".", "-")
                brought = setup_pins.BROUGHT_BY_TORCH.match(name + "=")
                assert name in pinned or brought, f"{requirement.name} needs {needed}, which has no pin"


def test_what_is_installed_is_what_is_pinned():
    for requirement in pins(REQUIREMENTS + WEIGHTS):
        if requirement.marker is None or requirement.marker.evaluate():
            version = importlib.metadata.version(requirement.name)
            assert requirement.specifier.contains(version, prereleases=True), f"{requirement}: {version} is installed"


def test_conda_gets_the_same_pins_and_the_same_pythons():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    python, pip = environment["dependencies"][0], environment["dependencies"][-1]["pip"]
    assert Requirement(python).specifier == SpecifierSet(PROJECT["requires-python"])
    assert pip == ["-r requirements.txt", "-e ."], "the pins stand in requirements.txt alone"
    assert environment["dependencies"][1:-1] == ["pip"], "what conda installed would not have the pinned version"


def test_compiling_pins_keeps_the_header_and_leaves_out_what_torch_brings():
    compiled = "a==1\n# a note\n\nnvidia-cublas==12.1 ; sys_platform == 'linux'\ncuda-bindings==1\ntriton==3\nzeta==2\n"
    assert setup_pins.without_torch_parts(compiled) == ["a==1", "zeta==2"]
    assert setup_pins.header("# one\n# two\na==1\n# three\n") == ["# one", "# two"]
    assert setup_pins.header(REQUIREMENTS), "requirements.txt says in its header how it was made"


# ------------------------------------------------------------------------------------------------ JupyterLab's start


@pytest.fixture
def taken_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_taken_port_that_was_asked_for_gives_one_clear_line(taken_port):
    result = subprocess.run(
        [sys.executable, "-m", "tools.lab", "--no-browser", "--port", str(taken_port)],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert result.returncode == 1
    assert result.stderr.splitlines() == [
        f"lab: port {taken_port} is taken by another program: name another with PORT=, or none to get a free one"
    ]


def test_without_a_wish_a_free_port_is_taken_and_said(taken_port, capsys):
    port = lab.choose_port(None, first=taken_port)
    assert port > taken_port and lab.is_free(port)
    assert capsys.readouterr().out == f"Port {taken_port} is taken by another program; JupyterLab takes {port}.\n"


def test_a_port_out_of_range_is_refused():
    for port in (-1, 80, 70000):
        with pytest.raises(lab.PortTaken, match="between 1024 and 65535"):
            lab.choose_port(port)


def test_jupyterlab_is_bound_to_this_computer_and_wants_its_token():
    arguments = lab.server_arguments(9999, "secret")
    assert "--ServerApp.ip=127.0.0.1" in arguments and "--IdentityProvider.token=secret" in arguments
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb" in arguments
    assert not any("open_browser" in argument for argument in arguments)
    assert "--ServerApp.open_browser=False" in lab.server_arguments(9999, "secret", browser=False)


def test_the_stamp_can_be_read_by_eye(clone, calls):
    setup_environment.set_up(str(clone / ".venv"), str(clone))
    stamp = json.loads((clone / ".venv" / setup_environment.STAMP).read_text(encoding="utf-8"))
    assert stamp["python"] == "{}.{}".format(*sys.version_info[:2]) and len(stamp["inputs"]) == 64
