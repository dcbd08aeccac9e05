"""Draw the README's picture, notebooks/figures/overview.png: python -m tools.overview

Left, chapter 02's calculation by hand: a recurrent network unrolled over the running example. Right, the ladder:
bits per character on held-out plays, of n-grams measured here and of the trained networks by their cards.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from transformer_lib.evaluation import bits_per_token
from transformer_lib.models import NGramModel
from transformer_lib.models.trained import load_card
from transformer_lib.parts.recurrent import RNNCell, unroll
from transformer_lib.show import COLOURS
from transformer_lib.text import CharTokenizer, load_corpus

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "notebooks" / "figures" / "overview.png"
TOKENS = [
    ("猫", "cat", (1, 0)),
    ("は", "topic", (0, 1)),
    ("魚", "fish", (1, 1)),
    ("が", "subject", (0, 1)),
    ("好き", "like", (-1, 1)),
]
ORDERS = range(1, 7)
NETWORKS = ["rnn-shakespeare", "lstm-shakespeare", "gru-shakespeare", "gpt-shakespeare"]


def hidden_states() -> list[list[float]]:
    """h_1 to h_5 of the hand calculation: W_x lets through, W_h halves, f is ReLU, no bias."""
    cell = RNNCell(2, 2, f=torch.relu)
    with torch.no_grad():
        cell.W_x.copy_(torch.eye(2))
        cell.W_h.copy_(torch.eye(2) / 2)
        cell.b.zero_()
        H, _ = unroll(cell, torch.tensor([vector for _, _, vector in TOKENS], dtype=cell.b.dtype))
    return H.tolist()


def draw_unrolled(ax: Axes) -> None:
    """The same cell at every step, the memo that it hands on, and how much of 猫 is left in it."""
    states = hidden_states()
    for t, ((token, gloss, _), h) in enumerate(zip(TOKENS, states)):
        ax.add_patch(plt.Rectangle((t - 0.3, -0.3), 0.6, 0.6, facecolor="#dcecf5", edgecolor=COLOURS["blue"], lw=1.6))
        ax.text(t, 0, "cell", ha="center", va="center", fontsize=11)
        arrow = {"arrowstyle": "-|>", "color": "#444444", "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (t, -0.32), (t, -0.85), arrowprops=arrow)
        ax.annotate("", (t, 0.85), (t, 0.32), arrowprops=arrow)
        if t > 0:
            ax.annotate("", (t - 0.32, 0), (t - 0.68, 0), arrowprops=arrow)
        ax.text(t, -1.1, token, ha="center", va="center", fontsize=15)
        ax.text(t, -1.42, gloss, ha="center", va="center", fontsize=9, color="#555555", style="italic")
        ax.text(t, 1.05, f"({h[0]:g}, {h[1]:g})", ha="center", va="center", fontsize=11, color=COLOURS["vermilion"])
    ax.text(-0.75, 1.05, "$h_t$", ha="center", va="center", fontsize=12, color=COLOURS["vermilion"])
    ax.text(-0.75, -1.1, "$x_t$", ha="center", va="center", fontsize=12)
    ax.set(xlim=(-1, 4.6), ylim=(-1.7, 1.45), title="Chapter 02: one cell, five words, a memo by hand")
    ax.axis("off")


def rungs() -> list[tuple[str, float, str]]:
    """Name, bits per character on the held-out plays, colour: n-grams measured here, networks read from their cards."""
    corpus = load_corpus("shakespeare")
    tokenizer = CharTokenizer.train(corpus.train)
    counted = NGramModel(max(ORDERS), tokenizer.vocab_size).fit(tokenizer.encode(corpus.train))
    test = tokenizer.encode(corpus.test)
    found = [(f"{n}-gram", bits_per_token(counted.using(n=n), test), COLOURS["sky"]) for n in ORDERS]
    for name in NETWORKS:
        found.append((name.split("-")[0].upper(), load_card(name)["figures"]["test_bits"], COLOURS["vermilion"]))
    return found


def draw_ladder(ax: Axes) -> None:
    """A bar for each model of the ladder; the fewer bits, the better it foresees the next letter."""
    names, bits, colours = zip(*rungs())
    bars = ax.barh(names, bits, color=colours)
    ax.bar_label(bars, [f"{value:.2f}" for value in bits], padding=3)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set(
        xlim=(0, max(bits) * 1.15),
        xlabel="bits per character, plays held out (fewer is better)",
        title="Chapters 01 to 13: the ladder",
    )


def draw() -> Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), width_ratios=(1.5, 1))
    draw_unrolled(left)
    draw_ladder(right)
    return figure


if __name__ == "__main__":
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    draw().savefig(PICTURE, dpi=150, metadata={"Software": None})
    print(f"{PICTURE.relative_to(ROOT).as_posix()} drawn")
