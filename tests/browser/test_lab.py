"""Chapter 01 in a browser, from top to bottom: run it, move a slider by keyboard, flip a switch, answer the quiz."""

import pytest

from tests.browser.driver import ARTIFACTS, Notebook, changed_figure, picture, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow]
CHAPTER = "01_language_models_and_ngrams.ipynb"
WIDGET = "application/vnd.jupyter.widget-view+json"


def test_the_course_opens_at_chapter_00(page, jupyterlab, troubles):
    """The address that `make lab` prints leads to the start, with its kernel running."""
    assert jupyterlab.address.startswith("http://127.0.0.1:") and len(jupyterlab.token) >= 32
    Notebook(page).open(jupyterlab.address, "00_start_here.ipynb")
    page.wait_for_timeout(2000)
    page.screenshot(path=ARTIFACTS / "chapter-00.png")
    fonts = page.evaluate("[...document.fonts].map(font => [font.family, font.status])")
    assert any("IPAexGothic" in family and status == "loaded" for family, status in fonts), "no Japanese font came"
    family = page.evaluate(
        """kind => {
            const widget = document.body.appendChild(document.createElement("div"));
            widget.className = "jupyter-widgets";
            return kind.map(name => getComputedStyle(widget.appendChild(document.createElement(name))).fontFamily);
        }""",
        ["select", "option", "input", "button"],
    )
    assert all("IPAexGothic" in one for one in family), f"a menu would show boxes for Japanese: {family}"
    assert page.locator(".jp-toastContainer, .Toastify__toast").count() == 0, "JupyterLab asks the newcomer something"
    assert not troubles.seen, troubles.seen


def test_no_token_no_notebook(page, jupyterlab):
    page.goto(f"{jupyterlab.origin}/lab/tree/notebooks/{CHAPTER}")
    assert "/login" in page.url


def test_chapter_01_runs_and_its_widgets_answer(page, jupyterlab, troubles):
    notebook = Notebook(page)
    notebook.open(jupyterlab.page(f"notebooks/{CHAPTER}"), CHAPTER)
    cells = notebook.run_all(seconds=240)

    with_code = [cell for cell in cells if "".join(cell["source"]).strip()]
    assert [cell["execution_count"] for cell in with_code] == list(range(1, len(with_code) + 1))
    for cell in cells:
        for output in cell["outputs"]:
            assert output["output_type"] != "error", output
            assert output.get("name") != "stderr", output

    places = [cell["place"] for cell in cells if any(WIDGET in output.get("data", {}) for output in cell["outputs"])]
    sliders = switches = quizzes = 0
    for place in places:
        cell = notebook.show_cell(place)
        cell.locator(".widget-vbox").first.wait_for(timeout=30_000)
        if cell.locator(".noUi-handle").count():
            sliders += move_slider(page, cell)
            switches += flip_switches(cell)
        elif cell.locator(".widget-button").count():
            quizzes += answer_quiz(page, cell)
    assert sliders, "no slider in the chapter"
    assert quizzes, "no quiz in the chapter"
    if any(word in "".join(cell["source"]) for cell in cells for word in ("Checkbox(", "ToggleButton")):
        assert switches, "the chapter has a checkbox or a toggle button, and none was flipped"

    page.screenshot(path=ARTIFACTS / "chapter-01.png")
    assert not troubles.seen, troubles.seen


def move_slider(page, cell) -> int:
    """Move the first slider with the arrow keys: the number beside it changes, and so does the figure."""
    handle, readout = cell.locator(".noUi-handle").first, cell.locator(".widget-readout").first
    figure, number = picture(cell), readout.inner_text()
    handle.scroll_into_view_if_needed()
    handle.focus()
    at_the_end = handle.get_attribute("aria-valuenow") == handle.get_attribute("aria-valuemax")
    page.keyboard.press("ArrowLeft" if at_the_end else "ArrowRight")
    wait_for(lambda: readout.inner_text() != number, 20, "the slider's number to change", pause=page.wait_for_timeout)
    changed_figure(cell, figure)
    page.screenshot(path=ARTIFACTS / "slider.png")
    return 1


def flip_switches(cell) -> int:
    """Flip a checkbox and a toggle button, and choose in a dropdown, where there are any: the figure follows."""
    flipped = 0
    for switch in ("input[type=checkbox]", ".widget-toggle-button", ".widget-toggle-buttons button:not(.mod-active)"):
        if cell.locator(switch).count():
            figure = picture(cell)
            cell.locator(switch).first.click()
            changed_figure(cell, figure)
            flipped += 1
    if cell.locator("select").count():
        figure, choice = picture(cell), cell.locator("select").first
        chosen = choice.evaluate("one => one.selectedIndex")
        choice.select_option(index=0 if chosen else 1)
        changed_figure(cell, figure)
    return flipped


def answer_quiz(page, cell) -> int:
    """Try the first question's answers until one is right: each is explained, and the count of right ones rises."""
    text = cell.locator(".jp-OutputArea-output")
    if "right" not in text.first.inner_text():
        return 0  # a check of an exercise, not a quiz
    assert "0 of" in text.first.inner_text()
    for letter in "ABCDEFGH":
        button = cell.get_by_role("button", name=letter, exact=True).first
        button.click()
        said = wait_for(
            lambda letter=letter: next(
                (verdict for verdict in ("Right.", "Not quite.") if f"{letter}: {verdict}" in text.first.inner_text()),
                None,
            ),
            20, f"what is said about answer {letter}", pause=page.wait_for_timeout,
        )  # fmt: skip
        if said == "Right.":
            break
    wait_for(lambda: "1 of" in text.first.inner_text(), 20, "the count of right answers", pause=page.wait_for_timeout)
    page.screenshot(path=ARTIFACTS / "quiz.png")
    return 1
