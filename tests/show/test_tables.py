"""Tables: what a reader sees as text and as Markdown."""

import pytest

from transformer_lib.show import table


@pytest.fixture
def shown(displayed):
    def data_of(headers, rows):
        table(headers, rows)
        return displayed[-1][0]

    return data_of


def test_text_and_markdown_hold_the_same_cells(shown):
    data = shown(["word", "P"], [["好き (like)", 0.4], ["机 (desk)", 0.0001]])
    assert data["text/plain"].splitlines() == [
        "word              P",
        "好き (like)     0.4",
        "机 (desk)    0.0001",
    ]
    assert data["text/markdown"].splitlines() == [
        "| word | P |",
        "| --- | ---: |",
        "| 好き (like) | 0.4 |",
        "| 机 (desk) | 0.0001 |",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0621, "2.062"),
        (1234567, "1,234,567"),
        (7.888609e-31, "7.89e-31"),
        (1.25e14, "1.25e+14"),
        (63123.4, "63,123"),
        (float("inf"), "inf"),
        (0.0, "0"),
        (True, "True"),
        (None, "None"),
    ],
)
def test_numbers_are_short(shown, value, text):
    assert shown(["x"], [[value]])["text/plain"].splitlines()[1].strip() == text


def test_a_bar_does_not_break_the_markdown(shown):
    assert shown(["P(b|a)"], [["a|b"]])["text/markdown"].splitlines()[0] == r"| P(b\|a) |"


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="expected 2 values in each, got 1 in row 0"):
        table(["a", "b"], [[1]])
