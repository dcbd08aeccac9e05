"""The browser tests' own tools: they skip only where they may, and they notice trouble."""

from types import SimpleNamespace

import pytest

from tests.browser import driver


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A computer without a browser."""
    monkeypatch.setattr(driver, "PLACES", [])
    return {"PATH": str(tmp_path)}


def test_without_a_browser_the_test_is_skipped_with_a_reason(nowhere):
    with pytest.raises(pytest.skip.Exception, match="no Chromium, Chrome or Edge was found: install one"):
        driver.browser_or_skip(nowhere)


def test_in_ci_the_test_fails_instead_of_being_skipped(nowhere):
    with pytest.raises(pytest.fail.Exception, match="in CI this test is never skipped"):
        driver.browser_or_skip({**nowhere, "CI": "true"})


def test_a_browser_is_found_on_the_path_by_name_and_in_its_usual_place(nowhere, tmp_path, monkeypatch):
    program = tmp_path / "chromium"
    program.write_text("", encoding="utf-8")
    program.chmod(0o755)
    assert driver.find_browser({"CHROMIUM": str(program)}) == str(program)
    assert driver.find_browser({"CHROMIUM": str(tmp_path / "missing")}) is None
    monkeypatch.setattr(driver, "PLACES", [str(program)])
    assert driver.find_browser({"PATH": ""}) == str(program)


def test_every_kind_of_trouble_is_written_down():
    troubles = driver.Troubles("http://127.0.0.1:1")
    handlers = {}
    troubles.watch(SimpleNamespace(on=handlers.__setitem__))
    handlers["pageerror"]("TypeError: x is undefined")
    handlers["request"](SimpleNamespace(url="https://cdn.example/mathjax.js"))
    handlers["response"](SimpleNamespace(status=404, url="http://127.0.0.1:1/missing"))
    handlers["requestfailed"](SimpleNamespace(failure="net::ERR_CONNECTION_REFUSED", url="http://127.0.0.1:1/x"))
    assert len(troubles.seen) == 4
    handlers["request"](SimpleNamespace(url="http://127.0.0.1:1/lab"))
    handlers["response"](SimpleNamespace(status=200, url="http://127.0.0.1:1/lab"))
    handlers["requestfailed"](SimpleNamespace(failure="net::ERR_ABORTED", url="http://127.0.0.1:1/x"))
    assert len(troubles.seen) == 4


def test_waiting_in_vain_says_for_what():
    with pytest.raises(AssertionError, match="in vain for a miracle"):
        driver.wait_for(lambda: False, 0.05, "a miracle", pause=lambda milliseconds: None)
    assert driver.wait_for(lambda: "now", 1, "nothing") == "now"
