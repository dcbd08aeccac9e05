"""Count and measure the ladder's n-grams: `python -m recipes.ngram_shakespeare` (about a CPU-minute).

Chapter 01. The k of add-k is chosen on the validation plays; the test plays are read once, at the end.
"""

import argparse
import json
import math
import time
from pathlib import Path

import torch

from transformer_lib.evaluation import bits_per_token
from transformer_lib.models import NGramModel
from transformer_lib.paths import DATA
from transformer_lib.text import CharTokenizer, load_corpus

LONGEST = 6
KS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)


def main(folder: Path) -> None:
    """Write the card ngram-shakespeare.json; the counts themselves are made anew in seconds, and are not kept."""
    torch.set_num_threads(1)
    corpus = load_corpus("shakespeare")
    tokenizer = CharTokenizer.train(corpus.train)
    train, validation, test = (
        torch.tensor(tokenizer.encode(text)) for text in (corpus.train, corpus.validation, corpus.test)
    )
    rungs = []
    for n in range(1, LONGEST + 1):
        clock = time.process_time()
        counted = NGramModel(n, tokenizer.vocab_size).fit(train)
        counting = time.process_time() - clock
        parameters = sum(len(counts) for counts in counted.counts.counts.values())
        best = min(KS, key=lambda k: bits_per_token(counted.using(smoothing="add-k", k=k), validation))
        for smoothing, settings in (
            ("add-k", {"k": best}),
            ("kneser-ney", {}),
            ("modified-kneser-ney", {}),
        ):
            bits = bits_per_token(counted.using(smoothing=smoothing, **settings), test)
            rungs.append(
                {
                    "name": f"{n}-gram, {smoothing}",
                    "n": n,
                    "smoothing": smoothing,
                    **settings,
                    "parameters": parameters,
                    "cpu_seconds": round(counting, 2),
                    "bits": round(bits, 5),
                    "nats": round(bits * math.log(2), 5),
                }
            )
            print(rungs[-1])
    card = {
        "model": "NGramModel",
        "data": "shakespeare, characters",
        "held_out": "whole plays, read from start to end",
        "ks_tried": KS,
        "rungs": rungs,
    }
    (folder / "ngram-shakespeare.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=DATA / "models", help="where the card goes")
    main(parser.parse_args().folder)
