"""Each rule notices what it is there for: a good notebook passes all of them, and one planted violation fails one."""

import copy
import re

import matplotlib.pyplot as plt
import nbformat
import pytest

from tests.notebooks.book import Book
from tests.notebooks.code_rules import exercises_are_open
from tests.notebooks.library_names import public_names
from tests.notebooks.output_rules import axes_are_labelled, figures_through_show
from tests.notebooks.rules import RULES
from tests.notebooks.samples import ALT, DIGEST, DRAW, PICTURE, chapter, code, in_folder, renumbered, solutions, stream
from transformer_lib.show.figures import render

HAND, LISTING, ASSERT, DRAWS, SHOWS, EXPLORES, IGNORES, ASKS, _, _, QUIZ = range(1, 12)  # execution counts


def cell(notebook, count):
    """The code cell with this execution count."""
    return next(one for one in notebook.cells if one.get("execution_count") == count)


def put(count, source=None, outputs=None, **metadata):
    """A change: another source, other outputs or other metadata for one code cell."""

    def change(notebook):
        one = cell(notebook, count)
        one.source = one.source if source is None else source
        if outputs is not None:
            one.outputs = [nbformat.from_dict(output) for output in outputs]
        one.metadata.update(nbformat.from_dict(metadata))

    return change


def added(source, *outputs, at=3, **metadata):
    """A change: one more code cell, by default right after the first one."""

    def change(notebook):
        notebook.cells.insert(at, code(source, *outputs, **metadata))
        notebook.cells[at].id = f"added{len(notebook.cells)}"
        renumbered(notebook)

    return change


def says(text):
    """A change: one more Markdown cell."""

    def change(notebook):
        notebook.cells.insert(2, nbformat.v4.new_markdown_cell(text, id="added"))

    return change


def replaced(old, new):
    """A change: other words in the Markdown cells."""

    def change(notebook):
        hit = [one for one in notebook.cells if one.cell_type == "markdown" and old in one.source]
        assert hit
        hit[0].source = hit[0].source.replace(old, new, 1)

    return change


def moved(first, second):
    """A change: a section after another one."""

    def change(notebook):
        at = {one.source: place for place, one in enumerate(notebook.cells)}
        notebook.cells.insert(at[f"## {second}\n\nWords."], notebook.cells.pop(at[f"## {first}\n\nWords."]))

    return change


def picture(alt=ALT, digest=DIGEST, **metadata):
    """The sample's picture with other words."""
    return {
        "output_type": "display_data",
        "data": {"image/png": "iVBORw0KGgo=", "text/plain": digest},
        "metadata": {"image/png": {"alt": alt}} if alt is not None else {},
    }


def result(text):
    """What the last line of a cell leaves behind."""
    return {"output_type": "execute_result", "data": {"text/plain": text}, "metadata": {}, "execution_count": 1}


ERROR = {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []}
VIOLATIONS = [
    (
        "executed_in_order",
        lambda n: setattr(cell(n, HAND), "execution_count", None),
        "execution count None instead of 1",
    ),
    ("executed_in_order", lambda n: setattr(cell(n, ASSERT), "execution_count", 7), "execution count 7 instead of 3"),
    ("executed_in_order", put(HAND, ""), "empty code cell"),
    ("normalised", lambda n: n.metadata.update(widgets={}), "not normalised"),
    ("normalised", put(HAND, execution={"start": "now"}), "not normalised"),
    ("no_errors", put(HAND, outputs=[ERROR]), "ended in ValueError: no"),
    ("no_warnings", put(HAND, outputs=[stream("a", "stderr")]), "stderr"),
    ("no_warnings", put(HAND, outputs=[stream("x.py:3: UserWarning: a")]), "shows a UserWarning"),
    ("no_machine", put(HAND, outputs=[stream("saved to /home/me/x.txt")]), "absolute path, '/home/me/x.txt'"),
    ("no_machine", put(HAND, "open('/tmp/x')"), "absolute path"),
    ("no_machine", put(HAND, outputs=[result("PosixPath('/Users/me/a/b')")]), "absolute path"),
    ("no_machine", put(HAND, outputs=[result(r"WindowsPath('C:\\Users\\me')")]), "Windows path"),
    ("no_machine", says("See ~/course/data."), "home folder"),
    ("no_machine", says("Open http://localhost:8888/lab."), "this computer's address"),
    ("no_machine", put(HAND, outputs=[result("<function f at 0x7f0011223344>")]), "object's address"),
    (
        "no_second_definition",
        put(HAND, "def generate():\n    pass"),
        "binds generate, which is transformer_lib.decoding",
    ),
    ("no_second_definition", put(HAND, "class NGramModel:\n    pass"), "binds NGramModel"),
    ("no_second_definition", put(HAND, "for _ in []:\n    perplexity = 2"), "binds perplexity"),
    ("no_second_definition", put(HAND, "a, (b, explore) = 1, (2, 3)"), "binds explore"),
    ("no_second_definition", put(HAND, "from math import exp as perplexity"), "binds perplexity"),
    ("no_second_definition", put(HAND, "import matplotlib.pyplot as show"), "binds show"),
    ("no_second_definition", put(HAND, "with open('x') as check:\n    pass"), "binds check"),
    ("figures_through_show", put(SHOWS, outputs=[picture(alt=None)]), "without alt text and digest"),
    ("figures_through_show", put(SHOWS, outputs=[picture(alt=" ")]), "without alt text and digest"),
    (
        "figures_through_show",
        put(SHOWS, outputs=[picture(digest="<Figure size 640x480>")]),
        "without alt text and digest",
    ),
    ("figures_through_show", put(SHOWS, outputs=[picture(digest=DIGEST.replace(ALT, "Else"))]), "without alt text"),
    ("figures_through_show", put(HAND, outputs=[result("[<matplotlib.lines.Line2D>]")]), "matplotlib object's name"),
    ("axes_are_labelled", put(SHOWS, outputs=[picture(digest=DIGEST.replace("'Memory'", "''"))]), "without title"),
    ("axes_are_labelled", put(SHOWS, outputs=[picture(digest=DIGEST.replace("'step'", "''"))]), "without x label"),
    (
        "axes_are_labelled",
        put(EXPLORES, outputs=[picture(digest=DIGEST.replace("y='share'", "y=''"))]),
        "without y label",
    ),
    (
        "axes_are_labelled",
        put(SHOWS, outputs=[picture(digest=DIGEST.replace("label='share'", "label=''"))]),
        "colour bar",
    ),
    ("within_bounds", lambda n: [added("1")(n) for _ in range(30)], "41 code cells; at most 40"),
    ("within_bounds", lambda n: [added("explore(draw, alt='a')")(n) for _ in range(2)], "3 explore widgets; at most 2"),
    ("within_bounds", put(HAND, "x = 1\n" * 16), "16 lines; at most 15"),
    ("within_bounds", put(DRAWS, DRAW + "\n    # a" * 24), "26 lines; at most 25"),
    ("within_bounds", put(DRAWS, "x = 1"), "defines no function"),
    ("within_bounds", put(DRAWS, jupyter={}), "not folded"),
    ("ignored_outputs_have_reasons", put(IGNORES, reason=" "), "without a reason"),
    ("ignored_outputs_have_reasons", put(HAND, reason="so"), "ignores nothing"),
    ("ignored_outputs_have_reasons", put(HAND, tags=["nbval-skip"]), "carries nbval-skip"),
    ("ignored_outputs_have_reasons", put(HAND, tags=["raises-exception"]), "carries raises-exception"),
    ("ignored_outputs_have_reasons", put(HAND, "# NBVAL_IGNORE_OUTPUT\nx = 1"), "carries NBVAL_IGNORE_OUTPUT"),
    ("listings_are_asserted", put(LISTING, tags=[]), "without the tag listing"),
    ("listings_are_asserted", put(HAND, tags=["listing"]), "lists nothing"),
    ("listings_are_asserted", put(ASSERT, "x = 1"), "no later assert tests"),
    ("listings_are_asserted", added("listing(show)", at=6, tags=["listing"]), "before the next listing"),
    ("listings_are_asserted", put(LISTING, "listing(show)\nprint(2)"), "a cell of its own"),
    ("only_explore_moves", put(HAND, "interact(draw, n=3)"), "calls interact: use explore"),
    ("only_explore_moves", put(HAND, "import ipywidgets as w\nw.interactive_output(draw, {})"), "interactive_output"),
    ("only_explore_moves", put(HAND, "out = widgets.Output()"), "calls Output"),
    ("only_explore_moves", put(HAND, "plt.show()"), "calls plt.show"),
    ("only_explore_moves", put(HAND, "%timeit 1"), "command of IPython"),
    ("exercises_are_open", put(ASKS, 'answer = 3\ncheck("1.1", answer)'), "gives exercise 1.1 an answer"),
    ("exercises_are_open", put(ASKS, 'check("1.1", 3)'), "gives exercise 1.1 an answer"),
    (
        "exercises_are_open",
        put(ASKS, 'answer = None\nanswer = 3\ncheck("1.1", answer)'),
        "gives exercise 1.1 an answer",
    ),
    ("exercises_are_open", put(ASKS, 'answer = None\ncheck("1.9", answer)'), "asks for exercise 1.9"),
    ("exercises_are_open", put(ASKS, "x = 1"), "leaves out exercise 1.1"),
    ("exercises_are_open", put(ASKS, "x = 1"), "has 2 exercises; 3 to 6 are wanted"),
    ("exercises_are_open", put(QUIZ, "x = 1"), r"one quiz\(.01.\) is wanted"),
    ("numbers_are_short", put(HAND, outputs=[stream("0.30000000000000004")]), "shows 0.30000000000000004"),
    ("numbers_are_short", put(HAND, outputs=[result("tensor([1.2345678e-05])")]), "shows 1.2345678e-05"),
    ("sections_in_order", replaced("## Break it", "### Break it"), "lacks the section ## Break it"),
    (
        "sections_in_order",
        moved("Summary", "What remains open"),
        '"What remains open" too late: it comes before "Summary"',
    ),
    ("sections_in_order", says("## The picture"), '"The picture" again|"By hand" too late'),
    ("sections_in_order", replaced("## References", "## References\n\n## The listing: late"), '"The listing" again'),
    ("first_cell_introduces", replaced("# 01 A", "# A"), 'begin it with the number, "# 01'),
    ("first_cell_introduces", replaced("20 minutes", "Not long"), "how long"),
    ("first_cell_introduces", replaced("textbook: 7.1, 7.2", ""), "names no sections"),
    ("first_cell_introduces", says("# Another title"), "only heading of level 1"),
    ("first_cell_introduces", lambda n: n.cells.pop(0), "heading of level 1"),
    ("first_cell_introduces", added("x = 1", at=0), "title in Markdown"),
    ("no_codes_in_prose", says("As in C7.3.3."), "write textbook 3.3|write textbook 7.3.3"),
    ("no_codes_in_prose", says("As in T.sdpa."), "shows the code T.sdpa"),
    ("links_lead_somewhere", says("[a](nowhere.md)"), "links to nowhere.md, which is not there"),
    ("links_lead_somewhere", says("![a](pictures/a.png)"), "which is not there"),
    ("links_lead_somewhere", says('<img src="a.png">'), "which is not there"),
    ("links_lead_somewhere", says("[a](/notes.md)"), "which is not there"),
    ("links_lead_somewhere", says("[a](notes.md#what-was)"), "no heading there"),
    ("links_lead_somewhere", says("[a](#the-question)"), "no heading there"),
    ("names_in_prose_exist", says("The `RNNcell` does."), "names `RNNcell`"),
    ("names_in_prose_exist", says("Call `perplexty(model)` now."), "names `perplexty"),
    ("names_in_prose_exist", says("See `load_corpora`."), "names `load_corpora`"),
    (
        "names_in_prose_exist",
        says("See `transformer_lib.text.CharTokeniser`."),
        "names `transformer_lib.text.CharTokeniser`",
    ),
    ("names_in_prose_exist", says("See `torch.nn.LstmCell`."), "names `torch.nn.LstmCell`"),
    ("names_in_prose_exist", says("See `show.heat_map`."), "names `show.heat_map`"),
    ("names_in_prose_exist", says("See `NGramModel.guess`."), "names `NGramModel.guess`"),
]


@pytest.mark.parametrize("name, change, said", VIOLATIONS, ids=lambda given: given if isinstance(given, str) else "")
def test_a_planted_violation_is_noticed(name, change, said, tmp_path):
    notebook = copy.deepcopy(chapter())
    change(notebook)
    rule = next(rule for rule in RULES if rule.__name__ == name)
    faults = rule(in_folder(tmp_path, notebook))
    assert any(re.search(said, fault) for fault in faults), faults
    assert all("\n" not in fault and fault.startswith("01_good.ipynb") for fault in faults)


@pytest.mark.parametrize(
    "left_out, said",
    [
        ("nothing", None),
        ("title", "without title"),
        ("xlabel", "without x label"),
        ("ylabel", "without y label"),
        ("bar", "colour bar without a label"),
    ],
)
def test_a_real_figure_is_read_as_it_was_drawn(left_out, said, tmp_path):
    """The rule reads the digest: the two have to agree on how it is written."""
    figure, (ax, off) = plt.subplots(1, 2)
    labels = {"title": "It's \"猫\" y='x'", "xlabel": "step", "ylabel": "share"}
    image = ax.imshow([[1, 2]])
    ax.set(**{name: label for name, label in labels.items() if name != left_out})
    figure.colorbar(image, label="" if left_out == "bar" else "weight")
    off.set_axis_off()
    data, metadata = render(figure, ALT)
    notebook = chapter()
    put(SHOWS, outputs=[{"output_type": "display_data", "data": data, "metadata": metadata}])(notebook)
    book = in_folder(tmp_path, notebook)
    faults = axes_are_labelled(book)
    assert (len(faults) == 1 and said in faults[0]) if said else faults == []
    assert figures_through_show(book) == []


def test_the_names_offered_to_readers():
    names = public_names()
    assert {"NGramModel", "RNNCell", "load_corpus", "perplexity", "generate", "fit", "reproducible", "show"} <= set(
        names
    )
    assert names["RNNCell"] == "transformer_lib.parts.recurrent" and names["show"] == "transformer_lib.show"
    assert not {"number", "render", "require", "torch", "np", "average"} & set(names)


def test_every_rule_has_a_planted_violation():
    assert {name for name, _, _ in VIOLATIONS} == {rule.__name__ for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_good_notebook_passes(rule, tmp_path):
    assert rule(in_folder(tmp_path, chapter())) == []
    assert rule(in_folder(tmp_path, solutions(), is_chapter=False)) == []


ACCEPTED = {
    "numbers worked out by hand": put(
        HAND, outputs=[stream("(1.14125, 1.44125) 7.889e-31 1267650600228229401496703205376")]
    ),
    "a library name as a local variable": put(
        HAND, "def draw(check):\n    show = check\n    return [quiz for quiz in show]"
    ),
    "an import from the library": put(HAND, "from transformer_lib.show import check, explore, quiz"),
    "repeated ideas": replaced("## The picture", "## By hand: again\n\n## The listing: again\n\n## The picture"),
    "names that exist": says(
        "`transformer_lib.show.heatmap`, `torch.nn.LSTMCell`, `nn.LSTMCell`, `np.exp`, `log_probs`, `share`, "
        "`draw(n)`, `NGramModel.step`, `W_h`, `P(w)`, `hello there`, `notes.md`, `str.join`, "
        "`F.softmax`, `show(fig, alt='a')`"
    ),
    "code that is no link and no heading": says("```\n# a comment\n[a](b)\n```\nand `[a](b)`"),
    "links to elsewhere": says("[a](https://example.org/x) [b](notes.md) [c](#By-hand)"),
    "a ratio, a date and a version": put(HAND, outputs=[stream("1.5 times, 2.13.0, 12345678, 3/4, a.b")]),
    "an address in a listing": put(LISTING, outputs=[stream("x = 0.30000000000000004  # UserWarning: no")]),
    "folded and drawn": put(DRAWS, DRAW + "\n    # a" * 22),
}


@pytest.mark.parametrize("change", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_is_allowed_passes(change, tmp_path):
    notebook = copy.deepcopy(chapter())
    change(notebook)
    book = in_folder(tmp_path, notebook)
    assert [fault for rule in RULES for fault in rule(book)] == []


@pytest.mark.parametrize(
    "source, said",
    [
        ('answer = 1\nprint(verdict("1.1", answer))', 'does not assert verdict("1.1", ...) == "right"'),
        ('assert verdict("1.1", 1) != "right"', "does not assert"),
        ('assert verdict("1.9", 1) == "right"', "asks for exercise 1.9"),
        ("x = 1", "leaves out exercise 1.1"),
    ],
)
def test_a_solution_that_proves_nothing_is_noticed(source, said, tmp_path):
    notebook = solutions()
    cell(notebook, 1).source = source
    faults = exercises_are_open(in_folder(tmp_path, notebook, is_chapter=False))
    assert any(said in fault for fault in faults)


def test_a_picture_in_a_good_place_is_found_in_files_too(tmp_path):
    path = tmp_path / "01_good.ipynb"
    path.write_text(in_folder(tmp_path, chapter()).text, encoding="utf-8")
    assert Book.read(path).code[SHOWS - 1].outputs[0].data["text/plain"] == PICTURE["data"]["text/plain"]
