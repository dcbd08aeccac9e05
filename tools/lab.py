"""Start JupyterLab at chapter 00, reachable from this computer only and with a token.

Used by `make lab`; by hand: `python -m tools.lab [--port 8890] [--no-browser]` inside the environment.
"""

import argparse
import os
import secrets
import socket
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = ROOT / "tools" / "jupyterlab"
FIRST_NOTEBOOK = "notebooks/00_start_here.ipynb"
FIRST_PORT, PORTS_TRIED = 8888, 50


class PortTaken(Exception):
    """The port that was asked for belongs to another program."""


def is_free(port: int) -> bool:
    """Whether a server can listen on this port of this computer right now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        if os.name != "nt":  # where it means something else
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def choose_port(wanted: int | None, first: int = FIRST_PORT) -> int:
    """The port asked for, if it is free; without a wish the first free one from 8888 on.

    Raises PortTaken with one line where the reader asked for a port that another program holds.
    """
    if wanted is not None:
        if not 1024 <= wanted <= 65535:
            raise PortTaken(f"a port lies between 1024 and 65535, and {wanted} was asked for: name another, PORT=8890")
        if not is_free(wanted):
            raise PortTaken(
                f"port {wanted} is taken by another program: name another with PORT=, or none to get a free one"
            )
        return wanted
    for port in range(first, first + PORTS_TRIED):
        if is_free(port):
            if port != first:
                print(f"Port {first} is taken by another program; JupyterLab takes {port}.", flush=True)
            return port
    raise PortTaken(f"ports {first} to {first + PORTS_TRIED - 1} are all taken: name a free one with PORT=")


def server_arguments(
    port: int, token: str, notebook: str = FIRST_NOTEBOOK, browser: bool = True, root: Path = ROOT
) -> list[str]:
    """JupyterLab's settings: loopback and token, whatever a reader's own configuration says.

    The list is handed over inside this process, so that the token never shows among the computer's processes.
    """
    arguments = [
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        "--ServerApp.allow_remote_access=False",
        f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={root}",
        f"--LabApp.default_url=/lab/tree/{notebook}",
        # The course works without a network, so JupyterLab asks it for nothing: no updates, no news, no extensions.
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.news_url=None",
        "--LabApp.extension_manager=readonly",
        "--LabApp.custom_css=True",
        f"--LabApp.app_settings_dir={SETTINGS}",  # ... nor does it ask the reader whether it should
        # What a notebook and its kernel say to each other is nobody else's business on a shared computer.
        "--KernelManager.transport_encryption=auto",
        # Only errors are said; the address is printed by main. Control-C stops without asking again.
        "--ServerApp.log_level=ERROR",
        "--LabApp.log_level=ERROR",
        "--ServerApp.answer_yes=True",
    ]
    if not browser:
        arguments.append("--ServerApp.open_browser=False")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--allow-root")  # the usual user of a container; Jupyter wants to hear that it is meant
    return arguments


def with_japanese_font() -> type:
    """JupyterLab with the page's own style and, for it, the Japanese font that draws the figures."""
    import matplotlib_fontja
    from jupyter_server.serverapp import ServerApp
    from jupyterlab.labapp import LabApp
    from traitlets import default

    fonts = Path(matplotlib_fontja.__file__).with_name("fonts")

    class Server(ServerApp):
        @default("static_custom_path")
        def _default_static_custom_path(self):
            return [str(SETTINGS), str(fonts)]

    LabApp.serverapp_class = Server  # no subclass: JupyterLab finds its own files by its class's module
    return LabApp


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Start JupyterLab at chapter 00.")
    parser.add_argument("--port", type=int, help="the port to listen on; without it the first free one from 8888 on")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument("--notebook", default=FIRST_NOTEBOOK, help="the notebook to open")
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder to serve")
    chosen, settings = parser.parse_known_args(arguments)  # whatever else is said is meant for JupyterLab
    try:
        port = choose_port(chosen.port)
    except PortTaken as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the notebooks' numbers were made with one thread
    application = with_japanese_font()
    token = secrets.token_hex(24)
    print("JupyterLab starts in your browser. If none opens, open this address; Control-C here stops it.")
    print(f"    http://127.0.0.1:{port}/lab/tree/{chosen.notebook}?token={token}", flush=True)
    ours = server_arguments(port, token, chosen.notebook, not chosen.no_browser, chosen.root.resolve())
    application.launch_instance([*settings, *ours])
    return 0


if __name__ == "__main__":
    sys.exit(main())
