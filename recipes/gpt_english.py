"""Pre-train the small GPT that chapter 14 fine-tunes: `python -m recipes.gpt_english` (about 5 CPU-minutes).

Shakespeare, Moby-Dick and the Bible, the texts of chapter 11's BERT; a smaller vocabulary, for speed, and chapter 13's
fast recipe.
"""

import math

import torch
from torch import Tensor

from recipes.bert_pretraining import CORPORA, LENGTH, documents
from recipes.cards import options
from recipes.gpt_shakespeare import ROTARY, held_out_loss, make_gpt, muon
from recipes.language_model import warm_up_then_down
from recipes.one_model import curve, train_and_keep
from transformer_lib.models import GPT
from transformer_lib.text import WordPieceTokenizer, load_corpus
from transformer_lib.training import History, windows

NAME = "gpt-english"
SIZE = {"longest": LENGTH, "d_model": 128, "heads": 4, "layers": 3, **ROTARY, "f": "squared_relu"}
VOCABULARY, BATCH, STEPS = 2000, 16, 1200


def running_text(tokenizer: WordPieceTokenizer, part: str) -> Tensor:
    """All documents of the three corpora one after the other, each begun by [CLS]."""
    start, ids = tokenizer.ids[tokenizer.start], []
    for name in CORPORA:
        for document in documents(name, part):
            ids += [start, *tokenizer.encode(" ".join(document))]
    return torch.tensor(ids)


def main() -> None:
    chosen = options(f"Train {NAME}; goes on from its checkpoint if there is one.", STEPS)
    torch.set_num_threads(1)  # so that CPU-seconds compare
    torch.manual_seed(0)
    tokenizer = WordPieceTokenizer.train([load_corpus(name).train for name in CORPORA], VOCABULARY)
    arguments = {"vocab_size": tokenizer.vocab_size, **SIZE}
    model = make_gpt(arguments, zero_outputs=True)
    ids = {part: running_text(tokenizer, part) for part in ("train", "validation", "test")}

    def measure(model: GPT, history: History) -> dict:
        unigram = torch.bincount(ids["train"], minlength=tokenizer.vocab_size).add(1).float()
        return {
            "figures": {
                "test_loss": round(held_out_loss(model, ids["test"], LENGTH, 1000), 4),
                "test_loss_of_frequencies": round(-float((unigram / unigram.sum()).log()[ids["test"]].mean()), 4),
                "loss_if_all_were_equally_likely": round(math.log(tokenizer.vocab_size), 4),
            },
            "curve": curve(history, "nats a token on 200 windows of the validation texts"),
        }

    train_and_keep(
        NAME,
        chosen,
        model,
        tokenizer,
        {
            "arguments": arguments,
            "data": f"{', '.join(CORPORA)}; WordPiece, lower case; {len(ids['train'])} tokens, windows of {LENGTH}",
            "training": {"steps": chosen.steps, "batch_size": BATCH, "optimizer": "Muon 0.02, AdamW 0.005", "seed": 0},
        },
        windows(ids["train"], LENGTH, BATCH),
        muon(model),
        warm_up_then_down(chosen.steps, min(20, chosen.steps // 2)),
        lambda model: held_out_loss(model, ids["validation"], LENGTH, 200),
        200,
        measure,
    )


if __name__ == "__main__":
    main()
