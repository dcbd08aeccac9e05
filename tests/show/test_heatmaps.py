"""heatmap: names, numbers and colours stand where they belong, for every kind of matrix."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from transformer_lib.show import heatmap
from transformer_lib.show.digest import describe


@pytest.fixture
def close_all():
    yield
    plt.close("all")


pytestmark = pytest.mark.usefixtures("close_all")
MATRIX = [[0.1, 0.2, 0.7], [0.0, 0.9, 0.1]]


@pytest.mark.parametrize("kind", [list, np.array, lambda m: torch.tensor(m, requires_grad=True), torch.tensor])
def test_every_kind_of_matrix_gives_the_same_figure(kind):
    figure = heatmap(kind(MATRIX), ["猫", "魚"], ["a", "b", "c"], "Weights", "to", "from", label="weight")
    expected = heatmap(MATRIX, ["猫", "魚"], ["a", "b", "c"], "Weights", "to", "from", label="weight")
    assert describe(figure).replace("0.699999988", "0.7") == describe(expected)


def test_names_numbers_and_colour_bar_are_there():
    text = describe(heatmap(MATRIX, ["猫", "魚"], ["a", "b", "c"], "Weights", "to", "from", label="weight"))
    assert "axes title='Weights' x='to' -0.5 to 2.5 y='from' 1.5 to -0.5" in text
    assert "y ticks ['猫', '魚']" in text and "x ticks ['a', 'b', 'c']" in text
    assert "'0.70' (2, 0)" in text and "'0.00' (0, 1)" in text
    assert "colour bar label='weight' 0 to 0.9" in text


def test_numbers_are_left_out_when_there_are_many():
    text = describe(heatmap(np.eye(12), title="t", xlabel="x", ylabel="y"))
    assert "texts" not in text and "image 12 x 12" in text


def test_both_signs_make_a_symmetric_range_in_two_hues():
    figure = heatmap([[-1.0, 3.0]])
    image = figure.axes[0].images[0]
    assert image.get_clim() == (-3, 3) and image.get_cmap().name == "RdBu_r"
    assert heatmap([[-1.0, 3.0]], limits=(0, 2)).axes[0].images[0].get_cmap().name == "viridis"


def test_missing_cells_and_signless_zeros():
    figure = heatmap([[np.nan, -0.0001], [0.125, 0.125 - 1e-16]])
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["", "0.00", "0.12", "0.12"]


def test_written_numbers_stand_out_from_their_cell():
    figure = heatmap([[0.0, 1.0]])
    assert [text.get_color() for text in figure.axes[0].texts] == ["white", "black"]


def test_it_draws_into_given_axes():
    figure, (left, right) = plt.subplots(1, 2)
    assert heatmap(MATRIX, ax=right) is figure
    assert not left.images and right.images


@pytest.mark.parametrize(
    "matrix, names, said",
    [
        ([1.0, 2.0], {}, r"rows and columns; got shape \(2,\)"),
        (np.zeros((0, 3)), {}, r"got shape \(0, 3\)"),
        (MATRIX, {"rows": ["a"]}, "a name for each of the 2 rows; got 1"),
        (MATRIX, {"columns": ["a"]}, "a name for each of the 3 columns; got 1"),
    ],
)
def test_what_does_not_fit_is_an_error_of_one_line(matrix, names, said):
    with pytest.raises(ValueError, match=said):
        heatmap(matrix, **names)
