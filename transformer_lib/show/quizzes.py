"""A chapter's quiz: questions from one JSON file, an answer to each explained when it is chosen.

Serves all chapters.
"""

import hashlib
import json
from pathlib import Path

import ipywidgets

from transformer_lib.show.exercises import EXERCISES
from transformer_lib.show.figures import emit
from transformer_lib.show.panels import formatted, panel_html
from transformer_lib.show.widgets import view

LETTERS = "ABCDEFGH"


def load_quiz(chapter: str, folder: Path | None = None) -> list[dict]:
    """Read a chapter's questions and see that each can be answered.

    Raises:
        FileNotFoundError: the chapter has no quiz.
        ValueError: the file is not JSON, or a question lacks its text, has not exactly one right answer, or an answer
            lacks its text or its explanation.
    """
    path = Path(folder or EXERCISES) / f"ch{chapter}_quiz.json"
    if not path.is_file():
        raise FileNotFoundError(f"the quiz of chapter {chapter} should stand in exercises/{path.name}; got no file")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path.name} expects JSON; line {error.lineno} is not: {error.msg}") from None
    questions = content.get("questions") if isinstance(content, dict) else None
    if not isinstance(questions, list) or not questions or content.get("chapter") != chapter:
        raise ValueError(f'{path.name} expects {{"chapter": "{chapter}", "questions": [...]}} with a question or more')
    for number, question in enumerate(questions, 1):
        fault = _fault(question)
        if fault:
            raise ValueError(f"{path.name}, question {number}: {fault}")
    return questions


def _fault(question) -> str | None:
    if not isinstance(question, dict) or not _text(question.get("question")):
        return 'expected a text under "question"; got none'
    answers = question.get("answers")
    count = len(answers) if isinstance(answers, list) else 0
    if not 2 <= count <= len(LETTERS):
        return f'expected 2 to {len(LETTERS)} answers under "answers"; got {count}'
    for place, answer in enumerate(answers, 1):
        if not isinstance(answer, dict) or not _text(answer.get("text")) or not isinstance(answer.get("right"), bool):
            return f'answer {place} expects "text" and "right": true or false'
        if not _text(answer.get("why")):
            return f'answer {place} expects under "why" what is right or wrong about it; got nothing'
    if len({answer["text"] for answer in answers}) < len(answers):
        return "expected different answers; got one twice"
    rights = sum(answer["right"] for answer in answers)
    return None if rights == 1 else f"expected exactly one right answer; got {rights}"


def _text(value) -> bool:
    return isinstance(value, str) and bool(value.strip())


def shuffled(answers: list[dict]) -> list[dict]:
    """Order the answers by a hash of their texts: always the same, and no habit of the author's shows."""
    return sorted(answers, key=lambda answer: hashlib.sha256(answer["text"].encode("utf-8")).hexdigest())


class Question:
    """One question with a button for each answer and a place for what is said about the chosen one."""

    def __init__(self, number: int, question: dict):
        self.number, self.text, self.answers = number, question["question"], shuffled(question["answers"])
        self.is_right = False  # once the right answer was chosen, looking at the others takes nothing away
        narrow = {"width": "2.6em", "min_width": "2.6em"}
        self.buttons = [
            ipywidgets.Button(description=letter, tooltip=answer["text"], layout=narrow)
            for letter, answer in zip(LETTERS, self.answers)
        ]
        rows = []
        for place, (button, answer) in enumerate(zip(self.buttons, self.answers)):
            button.on_click(lambda _button, place=place: self.choose(place))
            text = f'<div style="line-height: 1.5; padding: 3px 0 0 4px">{formatted(answer["text"])}</div>'
            rows.append(ipywidgets.HBox([button, ipywidgets.HTMLMath(text)], layout={"align_items": "flex-start"}))
        heading = f'<div style="line-height: 1.5"><strong>{number}.</strong> {formatted(self.text)}</div>'
        self.feedback = ipywidgets.HTMLMath("")
        self.on_choice = lambda: None
        self.box = ipywidgets.VBox(
            [ipywidgets.HTMLMath(heading), *rows, self.feedback], layout={"margin": "0 0 14px 0", "max_width": "52em"}
        )

    def choose(self, place: int) -> None:
        """Mark an answer as chosen and say why it is right or wrong."""
        right = self.answers[place]["right"]
        self.is_right |= right
        for other, button in enumerate(self.buttons):
            button.button_style = ("success" if right else "danger") if other == place else ""
        kind, heading = ("right", "Right.") if right else ("wrong", "Not quite.")
        self.feedback.value = panel_html(kind, f"{LETTERS[place]}: {heading}", self.answers[place]["why"])
        self.on_choice()

    def listed(self, before: str = "   ") -> str:
        """The question and its answers as text, a line each, without saying which is right."""
        options = (f"{before}{letter}) {answer['text']}" for letter, answer in zip(LETTERS, self.answers))
        return "\n".join([f"{self.number}. {self.text}", *options])


class Quiz:
    """All questions of a chapter and the count of right answers."""

    def __init__(self, questions: list[dict]):
        self.questions = [Question(number, question) for number, question in enumerate(questions, 1)]
        self.score = ipywidgets.HTML()
        for question in self.questions:
            question.on_choice = self.count
        self.count()
        self.box = ipywidgets.VBox([*(question.box for question in self.questions), self.score])

    def count(self) -> None:
        """Write how many answers are right so far."""
        right = sum(question.is_right for question in self.questions)
        self.score.value = f"<strong>{right} of {len(self.questions)} right</strong>"

    def listed(self, before: str = "   ", emphasis: str = "") -> str:
        """The whole quiz as text, for a page without a kernel."""
        questions = "\n\n".join(question.listed(before) for question in self.questions)
        first = f"{emphasis}Quiz, {len(self.questions)} questions; run the cell to answer them.{emphasis}"
        return f"{first}\n\n{questions}"


def quiz(chapter: str, folder: Path | None = None) -> None:
    """Display a chapter's quiz: choose an answer and read what is right or wrong about it.

    Args:
        chapter: two digits, e.g. "01".
        folder: where the quiz files are, if not in notebooks/exercises.

    Raises:
        FileNotFoundError, ValueError: as `load_quiz`.
    """
    shown = Quiz(load_quiz(chapter, folder))
    emit({"text/plain": shown.listed(), "text/markdown": shown.listed("    - ", "*"), **view(shown.box)})
