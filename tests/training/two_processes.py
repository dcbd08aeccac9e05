"""What tests/training/test_processes.py starts by torchrun: a short training, its weights and history written down.

Each process seeds differently on purpose: the first one's weights are what all must start from.
"""

import sys

import torch
from torch import nn

from transformer_lib.models import RecurrentLanguageModel, Seq2Seq
from transformer_lib.parts.recurrent import GRUCell
from transformer_lib.training import batches_by_length, fit, next_token_loss, translation_loss, windows
from transformer_lib.training.processes import process_rank
from transformer_lib.weights import write_weights

IDS = torch.tensor([0, 1, 2, 3, 4, 3, 2, 1] * 30)


class WithSpares(RecurrentLanguageModel):
    """One weight frozen, one never used: neither may move, though the optimizer lets all weights decay."""

    def __init__(self):
        super().__init__(5, 4, 6, GRUCell)
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)
        self.unused = nn.Parameter(torch.ones(3))


def train(checkpoint, steps=12):
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(process_rank())
    model = WithSpares()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.1)
    history = fit(
        model,
        windows(IDS, 6, 8, seed=3),
        steps,
        optimizer,
        clip=0.5,
        evaluate=lambda m: next_token_loss(m, IDS[None, :30]),
        every=5,
        checkpoint=checkpoint,
    )
    return model, history


# Lengths of every kind, so that two halves of a batch hold unequal numbers of tokens; 4 batches of 8 and one of 5.
PAIRS = [([3 + i % 5] * (1 + i % 7), [1, *[4 + i % 3] * (1 + (5 * i) % 11), 2]) for i in range(37)]


def train_translator(checkpoint, steps=12):
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(process_rank())
    model = Seq2Seq(10, 4, 6)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.1)
    check = batches_by_length(PAIRS, 9, 0)
    history = fit(
        model,
        batches_by_length(PAIRS, 8, 0, seed=3),
        steps,
        optimizer,
        loss=translation_loss,
        clip=0.5,
        evaluate=lambda m: translation_loss(m, check(0)),
        every=5,
        checkpoint=checkpoint,
    )
    return model, history


TRAININGS = {"text": train, "translation": train_translator}

if __name__ == "__main__":
    kind, folder, steps = sys.argv[1], sys.argv[2], [int(number) for number in sys.argv[3:]]
    for number in steps:  # several: the later ones go on from the earlier one's checkpoint
        model, history = TRAININGS[kind](f"{folder}/checkpoint.safetensors", number)
    write_weights(f"{folder}/rank{process_rank()}.safetensors", model.state_dict(), vars(history))
    torch.distributed.destroy_process_group()
