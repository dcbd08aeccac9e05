"""quiz: every answer is explained, none is given away, and a faulty file is an error of one line."""

import json

import pytest

from transformer_lib.show import quiz
from transformer_lib.show.panels import formatted
from transformer_lib.show.quizzes import Quiz, load_quiz, shuffled
from transformer_lib.show.widgets import WIDGET_VIEW

QUESTIONS = [
    {
        "question": "What is $P(w \\mid v)$ if $a < b$?",
        "answers": [
            {"text": "A share", "right": True, "why": "It is `c / n`."},
            {"text": "A count", "right": False, "why": "A count is **no** share."},
            {"text": "A *sum*", "right": False, "why": "Nothing is added."},
        ],
    },
    {
        "question": "How many?",
        "answers": [
            {"text": "1", "right": False, "why": "Too few."},
            {"text": "2", "right": True, "why": "Two."},
        ],
    },
]


def _write(folder, content):
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / "ch07_quiz.json").write_text(text, encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    _write(tmp_path, {"chapter": "07", "questions": QUESTIONS})
    return tmp_path


def _place(question, text):
    return [answer["text"] for answer in question.answers].index(text)


def test_the_text_lists_everything_and_gives_nothing_away(folder, displayed):
    quiz("07", folder)
    quiz("07", folder)
    (data, metadata), (again, _) = displayed
    assert set(data) == {"text/plain", "text/markdown", WIDGET_VIEW} and metadata == {}
    for kind in ("text/plain", "text/markdown"):
        assert data[kind] == again[kind]
        assert all(text in data[kind] for text in ("$P(w \\mid v)$", "A share", "A count", "A *sum*", "How many?", "2"))
        assert not any(text in data[kind] for text in ("c / n", "Nothing is added", "Too few", "rue"))


def test_choosing_explains_and_counts(folder):
    shown = Quiz(load_quiz("07", folder))
    first, second = shown.questions
    assert shown.score.value == "<strong>0 of 2 right</strong>" and first.feedback.value == ""
    assert not any(button.button_style for button in first.buttons)

    wrong, right = _place(first, "A count"), _place(first, "A share")
    first.buttons[wrong].click()
    assert "Not quite" in first.feedback.value and "A count is <strong>no</strong> share." in first.feedback.value
    assert first.buttons[wrong].button_style == "danger" and "0 of 2" in shown.score.value

    first.buttons[right].click()
    assert "Right" in first.feedback.value and "It is <code>c / n</code>." in first.feedback.value
    assert [button.button_style for button in first.buttons].count("") == 2
    assert first.buttons[right].button_style == "success" and "1 of 2" in shown.score.value
    assert second.feedback.value == ""

    first.buttons[wrong].click()  # to read what is wrong about it
    assert "Not quite" in first.feedback.value and first.buttons[wrong].button_style == "danger"
    assert "1 of 2" in shown.score.value

    second.buttons[_place(second, "2")].click()
    assert "2 of 2" in shown.score.value


def test_the_order_of_answers_is_fixed_and_not_the_authors():
    places = [
        [answer["right"] for answer in shuffled([{"text": f"{n}{a}", "right": a == 0} for a in range(3)])].index(True)
        for n in range(300)
    ]
    assert all(80 < places.count(place) < 120 for place in range(3))


def _with(change):
    questions = json.loads(json.dumps(QUESTIONS))
    change(questions)
    return {"chapter": "07", "questions": questions}


FAULTY = {
    "not JSON": ("{", "expects JSON; line 1 is not"),
    "a list": ("[]", 'expects {"chapter": "07"'),
    "another chapter": ({"chapter": "08", "questions": QUESTIONS}, 'expects {"chapter": "07"'),
    "no questions": ({"chapter": "07", "questions": []}, "a question or more"),
    "no text": (_with(lambda q: q[0].pop("question")), 'question 1: expected a text under "question"'),
    "no answers": (_with(lambda q: q[1].pop("answers")), "question 2: expected 2 to 8 answers.*got 0"),
    "one answer": (_with(lambda q: q[1]["answers"].pop()), "question 2: expected 2 to 8 answers.*got 1"),
    "two right": (_with(lambda q: q[0]["answers"][1].update(right=True)), "exactly one right answer; got 2"),
    "none right": (_with(lambda q: q[0]["answers"][0].update(right=False)), "exactly one right answer; got 0"),
    "right in words": (_with(lambda q: q[0]["answers"][1].update(right="no")), "answer 2 expects .*true or false"),
    "no why": (_with(lambda q: q[0]["answers"][2].pop("why")), 'answer 3 expects under "why"'),
    "blank why": (_with(lambda q: q[0]["answers"][2].update(why=" ")), 'answer 3 expects under "why"'),
    "twice": (_with(lambda q: q[0]["answers"][2].update(text="A count")), "got one twice"),
}


@pytest.mark.parametrize("content, said", FAULTY.values(), ids=FAULTY.keys())
def test_a_faulty_file_is_an_error_of_one_line(content, said, tmp_path, displayed):
    _write(tmp_path, content)
    with pytest.raises(ValueError, match=said) as caught:
        quiz("07", tmp_path)
    assert "\n" not in str(caught.value) and "ch07_quiz.json" in str(caught.value) and not displayed


def test_a_missing_quiz_is_an_error_of_one_line(tmp_path):
    with pytest.raises(FileNotFoundError, match="chapter 08 should stand in exercises/ch08_quiz.json; got no file"):
        quiz("08", tmp_path)


def test_text_is_escaped_and_its_marks_are_set():
    assert formatted("a < b & `x < y` **bold** *soft* 2 * 3 * 4") == (
        "a &lt; b &amp; <code>x &lt; y</code> <strong>bold</strong> <em>soft</em> 2 * 3 * 4"
    )
    assert formatted("$a * b * c < d$ and `a * b * c`") == "$a * b * c &lt; d$ and <code>a * b * c</code>"
