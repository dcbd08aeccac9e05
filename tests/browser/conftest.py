"""The fixtures of the browser tests: JupyterLab as `make lab` starts it, on a copy of the notebooks, and a page."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.browser.driver import ARTIFACTS, FLAGS, Lab, Troubles, answers, browser_or_skip, wait_for
from tools import lab

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def course(tmp_path_factory) -> Path:
    """A copy of the notebooks: running them must not touch the tree. COURSE_COPY names another folder to copy."""
    folder = tmp_path_factory.mktemp("course")
    source = Path(os.environ.get("COURSE_COPY", ROOT))
    shutil.copytree(source / "notebooks", folder / "notebooks", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    return folder


@pytest.fixture(scope="session")
def jupyterlab(course, tmp_path_factory):
    """JupyterLab by the launcher of `make lab`, with settings of nobody's and the page's own commands in reach."""
    own = tmp_path_factory.mktemp("jupyter")
    places = ["JUPYTER_CONFIG_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR", "JUPYTER_RUNTIME_DIR"]
    environment = {
        **os.environ,
        **{name: str(own / name) for name in [*places, "IPYTHONDIR"]},
        "OMP_NUM_THREADS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    environment.pop("MPLBACKEND", None)  # the notebooks draw as they do for a reader
    command = [sys.executable, "-m", "tools.lab", "--no-browser", "--root", str(course)]
    log = own / "log.txt"
    with log.open("w", encoding="utf-8") as stderr:
        server = subprocess.Popen(
            [*command, "--port", str(lab.choose_port(None, first=9400)), "--LabApp.expose_app_in_browser=True"],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True, encoding="utf-8",
        )  # fmt: skip
    said = []
    reader = threading.Thread(target=lambda: said.extend(iter(server.stdout.readline, "")), daemon=True)
    reader.start()
    try:
        running = Lab(wait_for(lambda: re.search(r"http://\S+", "".join(said)), 60, f"an address; {log}")[0])
        wait_for(lambda: answers(f"{running.origin}/api/status?token={running.token}"), 60, f"JupyterLab; {log}")
        yield running
    finally:
        server.send_signal(signal.SIGINT if os.name != "nt" else signal.SIGTERM)
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        reader.join(5)
        server.stdout.close()


@pytest.fixture(scope="session")
def chromium():
    path = browser_or_skip()
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def troubles(jupyterlab) -> Troubles:
    return Troubles(jupyterlab.origin)


@pytest.fixture
def page(chromium, troubles, request):
    """A page that is watched; its last sight is kept, whether the test passes or not."""
    context = chromium.new_context(viewport={"width": 1200, "height": 1000}, locale="en-GB")
    page = context.new_page()
    troubles.watch(page)
    yield page
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"{request.node.name}-last.png")
    context.close()
