"""What BERT's ingredients are worth, in small: `python -m recipes.bert_ablations` (about 12 CPU-minutes).

Chapter 12. A small BERT as it stands, without next sentences, reading from left to right only, and smaller; and two
LSTMs, one for each direction, as ELMo has them. Each from one seed, with the same few steps of pre-training. A
recipe that was killed goes on with the runs that are missing.
"""

import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from recipes.bert_pretraining import LENGTH, Batch, batches, held_out, loss, measures, packed, vocabulary
from recipes.bert_tasks import TASKS
from recipes.cards import Runs, options
from recipes.fine_tuning import Example, answers, as_ids, by_features, features, fine_tune, share_right
from recipes.language_model import warm_up_then_down
from recipes.muon import MuonAndAdamW
from transformer_lib.models import Bert, PretrainingHeads, RecurrentLanguageModel
from transformer_lib.parts.masks import causal_mask
from transformer_lib.text import WordPieceTokenizer
from transformer_lib.training import fit, windows
from transformer_lib.training.pretraining import NOT_ASKED

SEEDS, STEPS, BATCH, WARM_UP = (0,), 1000, 32, 60  # fewer steps end where no way differs from another
MUON_RATE, ADAM_RATE = 1e-2, 2.5e-3
SIZE = {"d_model": 128, "heads": 4, "layers": 2, "d_ff": 512, "longest": LENGTH, "dropout": 0.0}
SMALLER = SIZE | {"d_model": 64, "heads": 2, "d_ff": 256}
TRAINED_ON, MEASURED_ON, TUNING = 600, 400, {"steps": 75, "rate": 1e-3, "size": 16}
FROZEN = ("author", "same scene")
LSTM_STEPS, LSTM_LENGTH, LSTM_RATE = 400, 24, 5e-3


class LeftToRight(Bert):
    """A BERT in which no place sees what stands to its right; the last token, the only one to see all, is pooled."""

    def forward(self, ids: Tensor, segments: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        self.last = (ids != self.pad_id).sum(1) - 1
        return super().forward(ids, segments, causal_mask(ids.shape[1]))

    def pooled(self, H: Tensor) -> Tensor:
        return torch.tanh(self.pooler(H[torch.arange(len(H)), self.last]))


WAYS: dict[str, tuple[type[Bert], dict, bool]] = {  # the encoder, its size, whether next sentences are asked
    "as BERT": (Bert, SIZE, True),
    "no next sentence": (Bert, SIZE, False),
    "left to right": (LeftToRight, SIZE, False),  # as in the paper: without next sentences
    "half as wide": (Bert, SMALLER, True),
}


class TwoWays(nn.Module):
    """ELMo in small: a language model that reads forward, one that reads backward; they never see each other."""

    pad_id = 0

    def __init__(self, forward: RecurrentLanguageModel, backward: RecurrentLanguageModel):
        super().__init__()
        self.ahead, self.back = forward, backward

    def forward(self, ids: Tensor, segments: Tensor | None = None) -> Tensor:
        """(batch, n, 2 d_h): of each token, the state that has read up to it and the one that has read down to it."""
        return torch.cat(
            [self.ahead.hidden_states(ids)[0], turned(self.back.hidden_states(turned(ids, ids))[0], ids)], -1
        )

    def word_log_probs(self, ids: Tensor, counts: Tensor) -> dict[str, Tensor]:
        """Of the token at each place but the first and the last, from its left, its right, and both (n - 2 of them).

        Both: $P(w | left) P(w | right) / P(w)$, right if left and right were independent given the word.
        """
        left = self.ahead.log_probs(ids)[:, :-2]
        right = turned(self.back.log_probs(turned(ids, ids)), ids)[:, 2:]
        both = left + right - (counts / counts.sum()).log()
        return {"left": left, "right": right, "both": torch.log_softmax(both, -1)}


def turned(X: Tensor, ids: Tensor) -> Tensor:
    """Each row the other way round up to its padding, which stays at the end."""
    n = torch.arange(ids.shape[1]).expand(ids.shape)
    length = (ids != TwoWays.pad_id).sum(1, keepdim=True)
    order = torch.where(n < length, length - 1 - n, n)
    return X[torch.arange(len(X))[:, None], order]


def pretrained(name: str, seed: int, tokenizer: WordPieceTokenizer, corpora: dict, steps: int) -> PretrainingHeads:
    """A small model and its few steps."""
    kind, size, next_sentence = WAYS[name]
    torch.manual_seed(seed)
    model = PretrainingHeads(kind(tokenizer.vocab_size, **size))
    fit(
        model,
        batches(corpora, tokenizer, BATCH, seed),
        steps,
        MuonAndAdamW(model, MUON_RATE, ADAM_RATE, weight_decay=0.01),
        partial(loss, next_sentence=next_sentence),
        warm_up_then_down(steps, min(WARM_UP, steps // 2)),
        clip=1.0,
    )
    return model


def two_ways(seed: int, tokenizer: WordPieceTokenizer, corpora: dict, steps: int) -> tuple[TwoWays, Tensor]:
    """Both language models on the passages one after another, as BERT reads them; and how often each token occurs."""
    cls, sep = tokenizer.ids[tokenizer.start], tokenizer.ids[tokenizer.end]
    documents = [d for each in corpora.values() for d in each]
    order = np.random.default_rng(seed).permutation(len(documents))
    ids = torch.tensor([i for d in order for passage in documents[d] for i in (cls, *passage, sep)])
    torch.manual_seed(seed)
    models = [RecurrentLanguageModel(tokenizer.vocab_size, 128, 128) for _ in range(2)]
    for model, text in zip(models, (ids, ids.flip(0)), strict=True):
        optimizer = torch.optim.Adam(model.parameters(), LSTM_RATE)
        read = windows(text, LSTM_LENGTH, BATCH, seed)
        fit(model, read, steps, optimizer, schedule=warm_up_then_down(steps, min(WARM_UP, steps // 2)), clip=1.0)
    return TwoWays(*models).eval(), torch.bincount(ids, minlength=tokenizer.vocab_size) + 1.0


@torch.no_grad()
def by_two_ways(model: TwoWays, counts: Tensor, some: list[Batch]) -> dict[str, float]:
    """Accuracy on the very words that BERT is asked; all other words are there to be read, none is masked."""
    right, asked = dict.fromkeys(("left", "right", "both"), 0), 0
    for given, _, wanted, _ in some:
        ids = torch.where(wanted == NOT_ASKED, given, wanted)  # the text as it was
        inner = wanted[:, 1:-1]
        asked += int((inner != NOT_ASKED).sum())
        for name, said in model.word_log_probs(ids, counts).items():
            right[name] += int((said.argmax(-1) == inner).sum())
    return {f"word_accuracy_{name}": round(count / asked, 4) for name, count in right.items()}


def tuned(bert: Bert, examples: dict[str, list[Example]], kinds: list[str], seed: int) -> dict[str, float]:
    """The questions after fine-tuning: which share is answered as it should be, in all and of each kind."""
    head, test = fine_tune("who speaks", bert, examples["train"], seed=seed, **TUNING), examples["test"]
    said = answers(head, test)
    result = {"all": share_right(said, test)}
    for kind in sorted(set(kinds)):
        mine = [i for i, one in enumerate(kinds) if one == kind]
        result[kind] = share_right([said[i] for i in mine], [test[i] for i in mine])
    return {name: round(share, 4) for name, share in result.items()}


def frozen(encoder: nn.Module, examples: dict[str, dict[str, list[Example]]]) -> dict:
    """Accuracy of logistic regression on the mean of states that stay as they are."""
    result = {}
    for task in FROZEN:
        train, test = (examples[task][part] for part in ("train", "test"))
        said = by_features(features(encoder, train), [e.target for e in train], features(encoder, test))
        result[task] = round(share_right(said, test), 4)
    return result


def main(folder: Path, steps: int) -> None:
    """Do the runs that are not done yet, then write bert-ablations.json."""
    torch.set_num_threads(1)
    tokenizer, runs = vocabulary(), Runs("bert-ablations", folder)
    sizes, tasks = {"train": TRAINED_ON, "test": MEASURED_ON}, (*FROZEN, "who speaks")
    made = {task: {part: TASKS[task](part, n) for part, n in sizes.items()} for task in tasks}
    examples = {t: {p: [as_ids(e, tokenizer) for e in some] for p, some in parts.items()} for t, parts in made.items()}
    kinds = [q.kind if q.answer is not None else "no answer" for q in made["who speaks"]["test"]]
    corpora, exam = packed(tokenizer, "train"), held_out(tokenizer, "test", 8)

    def one(name: str, seed: int) -> dict:
        clock = time.process_time()
        if name == "two LSTMs":
            model, counts = two_ways(seed, tokenizer, corpora, max(1, steps * LSTM_STEPS // STEPS))
            figures = by_two_ways(model, counts, exam)
        elif name == "not pre-trained":
            torch.manual_seed(seed)
            model, figures = Bert(tokenizer.vocab_size, **SIZE).eval(), {}
        else:
            trained = pretrained(name, seed, tokenizer, corpora, steps)
            model, figures = trained.bert, {n: round(v, 4) for n, v in measures(trained, exam).items()}
            if not WAYS[name][2]:
                del figures["next_accuracy"]  # never asked
        spent = time.process_time() - clock
        parameters = sum(p.numel() for p in model.parameters())
        result = {"way": name, "seed": seed, "parameters": parameters, "pretraining_cpu_seconds": round(spent, 1)}
        result |= {"pretraining": figures, "frozen": frozen(model, examples)}
        if name != "two LSTMs":
            result["fine_tuned"] = tuned(model, examples["who speaks"], kinds, seed)
        return result | {"cpu_seconds": round(time.process_time() - clock, 1)}

    for seed in SEEDS:
        for name in [*WAYS, "two LSTMs", "not pre-trained"]:
            runs.once(f"{name} / {seed} / {steps}", partial(one, name, seed))
    card = {
        "task": "pre-training in small, one thing changed at a time; one task by fine-tuning, two by frozen states",
        "measured_on": f"{exam[0][0].shape[0] * len(exam)} pairs of the test texts; {MEASURED_ON} test examples a task",
        "arguments": {"as BERT": SIZE, "half as wide": SMALLER, "two LSTMs": {"d_x": 128, "d_h": 128}},
        "training": {
            "steps": steps,
            "batch_size": BATCH,
            "optimizer": "Muon for the layers' matrices, AdamW for the rest",
            "muon_rate": MUON_RATE,
            "adam_rate": ADAM_RATE,
            "two_lstms": {"steps_each": LSTM_STEPS, "length": LSTM_LENGTH, "optimizer": "Adam", "rate": LSTM_RATE},
        },
        "fine_tuning": {"examples": TRAINED_ON, **TUNING},
        "runs": list(runs.done.values()),
    }
    runs.finish(card)


if __name__ == "__main__":
    chosen = options(__doc__.splitlines()[0], STEPS)
    main(chosen.folder, chosen.steps)
