"""Pre-train the BERT of chapters 11 and 12: `python -m recipes.bert_english` (about 45 CPU-minutes).

Shakespeare, Moby-Dick and the Bible; masked words and next sentences. Muon, which chapter 13 explains, because masked
words are learned slowly: 15 % of the places give a gradient, where a GPT learns from every one.
"""

import math
from functools import partial

import torch

from recipes.bert_pretraining import (
    CORPORA,
    LENGTH,
    CountingGuesser,
    batches,
    held_out,
    loss,
    measures,
    packed,
    vocabulary,
)
from recipes.cards import options
from recipes.language_model import warm_up_then_down
from recipes.muon import MuonAndAdamW
from recipes.one_model import curve, train_and_keep
from transformer_lib.models import Bert, PretrainingHeads
from transformer_lib.training import History

NAME = "bert-english"
SIZE = {"d_model": 192, "heads": 6, "layers": 3, "d_ff": 768, "longest": LENGTH, "dropout": 0.0}
BATCH, MUON_RATE, ADAM_RATE, WARM_UP = 32, 6e-3, 1.5e-3, 500


def rounded(measured: dict[str, float]) -> dict[str, float]:
    """With the 95 % interval of the share of pairs rightly judged, four digits behind the point."""
    p, n = measured["next_accuracy"], measured["pairs"]
    half = 1.96 * math.sqrt(p * (1 - p) / n)
    measured = measured | {"next_accuracy_from": p - half, "next_accuracy_to": p + half}
    return {name: round(value, 4) for name, value in measured.items()}


def main() -> None:
    chosen = options(f"Train {NAME}; goes on from its checkpoint if there is one.", 7000)
    torch.set_num_threads(1)  # so that CPU-seconds compare
    torch.manual_seed(0)
    tokenizer = vocabulary()
    arguments = {"vocab_size": tokenizer.vocab_size, **SIZE}
    model = PretrainingHeads(Bert(**arguments))

    def measure(model: PretrainingHeads, history: History) -> dict:
        test, across = (held_out(tokenizer, "test", 40, across=across) for across in (False, True))
        return {
            "figures": {
                "false B from the same corpus": rounded(measures(model, test)),
                "false B from any corpus": rounded(measures(model, across)),
            },
            "baselines": {name: round(share, 4) for name, share in CountingGuesser(tokenizer).accuracy(test).items()},
            "curve": curve(history, "on 1,536 pairs of the validation texts"),
        }

    train_and_keep(
        NAME,
        chosen,
        model,
        tokenizer,
        {
            "arguments": arguments,
            "data": f"{', '.join(CORPORA)}; WordPiece, lower case; passages of at most {(LENGTH - 3) // 2} tokens",
            "training": {
                "steps": chosen.steps,
                "batch_size": BATCH,
                "optimizer": "Muon for the layers' matrices, AdamW (0.9, 0.98) for the rest",
                "muon_rate": MUON_RATE,
                "adam_rate": ADAM_RATE,
                "weight_decay": 0.01,
                "schedule": f"{WARM_UP} steps up, then a straight line to 0",
                "clip": 1.0,
                "seed": 0,
            },
        },
        batches(packed(tokenizer, "train"), tokenizer, BATCH),
        MuonAndAdamW(model, MUON_RATE, ADAM_RATE, weight_decay=0.01),
        warm_up_then_down(chosen.steps, min(WARM_UP, chosen.steps // 2)),
        partial(measures, some=held_out(tokenizer, "validation", 24)),
        500,
        measure,
        loss,
    )


if __name__ == "__main__":
    main()
