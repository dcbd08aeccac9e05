"""How the browser tests find a browser, start JupyterLab and handle a notebook's page."""

import hashlib
import os
import re
import shutil
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ARTIFACTS = Path(__file__).parent / "artifacts"
NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "msedge"]
PLACES = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
]
# No sandbox: containers run as root. The rest keeps the browser from talking to its maker.
FLAGS = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
           --disable-component-update --disable-sync --disable-dev-shm-usage""".split()
NO_BROWSER = "no Chromium, Chrome or Edge was found: install one, or name it in the environment variable CHROMIUM"


def find_browser(environment=os.environ) -> str | None:
    """The browser named in CHROMIUM, else one on the path, else one in its usual place."""
    named = environment.get("CHROMIUM")
    if named:
        return named if Path(named).exists() else shutil.which(named)
    found = (shutil.which(name, path=environment.get("PATH")) for name in NAMES)
    return next((path for path in [*found, *PLACES] if path and Path(path).exists()), None)


def browser_or_skip(environment=os.environ) -> str:
    """The browser; without one the test is skipped and says why, but where CI promised one it fails."""
    found = find_browser(environment)
    if found is None and environment.get("CI"):
        pytest.fail(f"{NO_BROWSER}; in CI this test is never skipped")
    if found is None:
        pytest.skip(NO_BROWSER)
    return found


@dataclass
class Lab:
    """A running JupyterLab and the address that it printed."""

    address: str

    @property
    def origin(self) -> str:
        return re.match(r"http://[^/]+", self.address)[0]

    @property
    def token(self) -> str:
        return self.address.partition("?token=")[2]

    def page(self, notebook: str) -> str:
        """The address of a notebook in a fresh workspace."""
        return f"{self.origin}/lab/tree/{notebook}?token={self.token}&reset"


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as response:
            return response.status == 200
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def wait_for(condition, seconds: float, what: str, pause=lambda milliseconds: time.sleep(milliseconds / 1000)):
    """What `condition` gives as soon as it gives something; an error that says what was waited for, in the end.

    With a page, `pause` must be the page's own: only then do its messages come in meanwhile.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        pause(100)
    raise AssertionError(f"waited {seconds:.0f} s in vain for {what}")


@dataclass
class Troubles:
    """Everything that a page did wrong: errors of its scripts, requests that failed or left this computer."""

    origin: str
    seen: list[str] = field(default_factory=list)

    def watch(self, page) -> None:
        page.on("pageerror", lambda error: self.seen.append(f"page error: {str(error)[:300]}"))
        page.on("request", self._request)
        page.on("response", self._response)
        page.on("requestfailed", self._failed)

    def _request(self, request) -> None:
        if request.url.startswith(("http", "ws")) and "127.0.0.1" not in request.url:
            self.seen.append(f"request to elsewhere: {request.url[:200]}")

    def _response(self, response) -> None:
        if response.status >= 400:
            self.seen.append(f"status {response.status}: {response.url[:200]}")

    def _failed(self, request) -> None:
        # What a page gives up by itself, for example when it moves on, is no failure of the server's.
        if request.failure != "net::ERR_ABORTED":
            self.seen.append(f"failed: {request.failure} {request.url[:200]}")


@dataclass
class Notebook:
    """A notebook that is open in JupyterLab, handled as a reader handles it."""

    page: object
    # JupyterLab keeps only the cells in sight in the page; its model of the notebook knows all of them.
    MODEL = "window.jupyterapp.shell.currentWidget"

    def open(self, address: str, name: str) -> None:
        self.page.goto(address)
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
        self.page.wait_for_function(f"name => {self.MODEL}?.title.label === name", arg=name, timeout=60_000)
        self.wait_until_idle(90)

    def wait_until_idle(self, seconds: float) -> None:
        self.page.wait_for_function(
            f"() => {self.MODEL}?.sessionContext?.session?.kernel?.status === 'idle'", timeout=1000 * seconds
        )

    def run_all(self, seconds: float) -> list[dict]:
        """Run every cell, as the Run menu does; afterwards each code cell's number, count and outputs."""
        finished = "notebook:run-all-cells"
        self.page.evaluate(f"() => {{ window.courseRun = window.jupyterapp.commands.execute('{finished}') }}")
        self.page.wait_for_function("() => window.courseRun.then(() => true)", timeout=1000 * seconds, polling=500)
        self.wait_until_idle(30)
        return self.cells()

    def cells(self) -> list[dict]:
        """Each code cell: place in the notebook, source, execution count, outputs."""
        return self.page.evaluate(
            f"""() => [...{self.MODEL}.content.widgets].map((cell, place) => ({{place, ...cell.model.toJSON()}}))
                .filter(cell => cell.cell_type === 'code')"""
        )

    def show_cell(self, place: int):
        """Scroll to a cell, select it, and return its element."""
        self.page.evaluate(
            f"""async place => {{
                const notebook = {self.MODEL}.content;
                notebook.activeCellIndex = place;
                await notebook.scrollToItem(place, 'start');
            }}""",
            place,
        )
        cell = self.page.locator(f'.jp-Cell[data-windowed-list-index="{place}"]')
        cell.scroll_into_view_if_needed(timeout=30_000)
        return cell


def picture(box) -> str:
    """A digest of the figure in a widget's box."""
    image = box.locator("img")
    return hashlib.sha256(image.get_attribute("src").encode()).hexdigest() if image.count() else "no figure"


def changed_figure(box, before: str) -> str:
    """The figure's digest as soon as it is another one."""

    def other():
        now = picture(box)
        return now if now not in (before, "no figure") else None

    return wait_for(other, 30, "the figure to change", pause=box.page.wait_for_timeout)
