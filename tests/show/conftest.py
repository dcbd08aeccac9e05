"""What the tests of show share: a stand-in for the notebook, which records what is displayed."""

import matplotlib.pyplot as plt
import pytest

from transformer_lib.show import figures


@pytest.fixture
def displayed(monkeypatch):
    """The outputs that were sent to the notebook: a list of (data, metadata)."""
    sent = []
    monkeypatch.setattr(figures, "get_ipython", lambda: object())
    monkeypatch.setattr(figures, "display", lambda data, metadata, raw: sent.append((data, metadata)))
    return sent


@pytest.fixture(autouse=True)
def _no_figure_left_open():
    """A figure left open would be displayed a second time at the end of the cell."""
    plt.close("all")
    yield
    left = plt.get_fignums()
    plt.close("all")
    assert not left
