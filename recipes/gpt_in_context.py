"""A GPT trained to learn from the prompt: `python -m recipes.gpt_in_context` (about 2 CPU-minutes).

Chapter 14. Each row of text is a task of its own, told by examples alone, " ad bc ...": the mapping of letters to
letters differs from row to row. Some mappings are never trained on; on those it is measured.
"""

from collections.abc import Callable
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from recipes.cards import options
from recipes.gpt_shakespeare import ROTARY, make_gpt, muon
from recipes.language_model import warm_up_then_down
from recipes.one_model import curve, train_and_keep
from transformer_lib.models import GPT
from transformer_lib.text import CharTokenizer

NAME = "gpt-in-context"
LETTERS = "abcdefghij"
KINDS = ("shift", "swap", "lookup")
UNSEEN_SHIFTS = (3, 7)
EXAMPLES = 16
ASKED = slice(2, None, 3)  # where a letter was just asked about: description, blank, letter
TOKENIZER = CharTokenizer([*LETTERS, *"0123456789", " ", ".", "%", "?"])
SIZE = {"longest": 1 + 3 * EXAMPLES, "d_model": 64, "heads": 2, "layers": 2, **ROTARY, "f": "squared_relu"}
BATCH, STEPS = 32, 1500


def mapping(kind: str, chance: np.random.Generator) -> list[int]:
    """Where each letter goes. shift: all by the same number; swap: exchanged in pairs; lookup: anywhere."""
    n = len(LETTERS)
    if kind == "shift":
        k = int(chance.integers(n))
        return [(x + k) % n for x in range(n)]
    if kind == "swap":
        order = chance.permutation(n).tolist()
        to = dict(zip(order[::2] + order[1::2], order[1::2] + order[::2], strict=True))
        return [to[x] for x in range(n)]
    return chance.integers(n, size=n).tolist()


def is_unseen(kind: str, to: list[int]) -> bool:
    """Whether a mapping is kept for the test: shifts by 3 and 7, of the others every fifth by a checksum."""
    return to[0] in UNSEEN_SHIFTS if kind == "shift" else crc32(bytes(to)) % 5 == 0


def drawn(kind: str, unseen: bool, chance: np.random.Generator) -> list[int]:
    """A mapping of this kind, of those to train on or of those that are not."""
    while True:
        to = mapping(kind, chance)
        if is_unseen(kind, to) == unseen:
            return to


def description(kind: str, to: list[int]) -> str:
    """What stands for a task's name in front of its examples: how far the letters move, % or ?."""
    return {"shift": str(to[0]), "swap": "%", "lookup": "?"}[kind]


def prompt(pairs: list[tuple[int, int]], query: int | None = None, name: str = ".") -> str:
    """Examples in a row, and the question; name: a description of the task, or a point for none."""
    text = name + "".join(f" {LETTERS[x]}{LETTERS[y]}" for x, y in pairs)
    return text if query is None else f"{text} {LETTERS[query]}"


def row(kind: str, to: list[int], chance: np.random.Generator, named: bool, letters: int = len(LETTERS)) -> list[int]:
    """A text of EXAMPLES examples of one mapping, as ids; letters: how many different ones are asked about at most."""
    few = chance.permutation(len(LETTERS))[:letters]
    asked = few[chance.integers(letters, size=EXAMPLES)].tolist()
    return TOKENIZER.encode(prompt([(x, to[x]) for x in asked], name=description(kind, to) if named else "."))


def rows(count: int, chance: np.random.Generator, kinds: tuple[str, ...] = KINDS, unseen: bool = False) -> Tensor:
    """Texts of tasks, each of a kind and a mapping of its own; every second one begins with its description.

    A text asks about 2 to 10 different letters: where few come again and again, looking back pays early in training.
    """
    texts = []
    for kind in (kinds[i] for i in chance.integers(len(kinds), size=count)):
        few, named = int(chance.integers(2, len(LETTERS) + 1)), bool(chance.integers(2))
        texts.append(row(kind, drawn(kind, unseen, chance), chance, named, few))
    return torch.tensor(texts)


def batches(size: int, seed: int) -> Callable[[int], Tensor]:
    """From the step's number to its batch."""
    return lambda step: rows(size, np.random.default_rng((seed, step)))


def answer_loss(model: GPT, batch: Tensor) -> Tensor:
    """The next-token loss where the next token is an answer; the others are drawn at random, nobody knows them."""
    said = model.log_probs(batch[:, :-1])[:, ASKED]
    return torch.nn.functional.nll_loss(said.flatten(0, 1), batch[:, 1:][:, ASKED].flatten())


@torch.no_grad()
def accuracy(model: GPT, some: Tensor) -> list[float]:
    """The share of right answers after 0, 1, 2, ... examples."""
    said = torch.cat([model.log_probs(part[:, :-1])[:, ASKED].argmax(-1) for part in some.split(100)])
    return [round(share, 4) for share in (said == some[:, 1:][:, ASKED]).double().mean(0).tolist()]


def measured(model: GPT, count: int = 1000) -> dict[str, dict[str, list[float]]]:
    """For each kind: mappings trained on and not, with a description and without."""
    found: dict[str, dict[str, list[float]]] = {}
    for kind in KINDS:
        for unseen in (False, True):
            for named in (False, True):
                chance = np.random.default_rng((99, KINDS.index(kind), unseen))
                texts = [row(kind, drawn(kind, unseen, chance), chance, named) for _ in range(count)]
                which = f"{'unseen' if unseen else 'seen'}, {'described' if named else 'not described'}"
                found.setdefault(kind, {})[which] = accuracy(model, torch.tensor(texts))
    return found


def main() -> None:
    chosen = options(f"Train {NAME}; goes on from its checkpoint if there is one.", STEPS)
    torch.set_num_threads(1)  # so that CPU-seconds compare
    torch.manual_seed(0)
    arguments = {"vocab_size": TOKENIZER.vocab_size, **SIZE}
    model = make_gpt(arguments, zero_outputs=True)
    exam = rows(300, np.random.default_rng(98), unseen=True)
    train_and_keep(
        NAME,
        chosen,
        model,
        TOKENIZER,
        {
            "arguments": arguments,
            "data": f"tasks of {len(LETTERS)} letters: {', '.join(KINDS)}; "
            f"{EXAMPLES} examples a row, each row a new task",
            "training": {"steps": chosen.steps, "batch_size": BATCH, "optimizer": "Muon 0.02, AdamW 0.005", "seed": 0},
        },
        batches(BATCH, 0),
        muon(model),
        warm_up_then_down(chosen.steps, min(20, chosen.steps // 2)),
        lambda model: answer_loss(model, exam),
        100,
        lambda model, history: {"figures": measured(model), "curve": curve(history, "nats an answer, unseen tasks")},
        answer_loss,
        torch.float32,
    )


if __name__ == "__main__":
    main()
