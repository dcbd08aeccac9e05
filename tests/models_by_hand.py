"""Language models small enough to know every probability of, for the tests of what is done with a model."""

import torch

from transformer_lib.protocols import LanguageModel, SequenceToSequenceModel


class Table(LanguageModel):
    """P(next | last token) from a table, (vocab_size, vocab_size). The state is how many tokens were read."""

    def __init__(self, table):
        self.table = torch.as_tensor(table, dtype=torch.float64)
        self.vocab_size = len(self.table)
        self.lengths = []  # of what each step was given: what was read, and in which pieces

    def step(self, ids, state=None):
        self.lengths.append(ids.shape[-1])
        return self.table.log()[ids], (state or 0) + ids.shape[-1]


def uniform(vocab_size):
    return Table(torch.full((vocab_size, vocab_size), 1 / vocab_size, dtype=torch.float64))


class Counting(LanguageModel):
    """Knows where it stands: after t tokens the next is t mod V with probability 1/2; the rest share the other half."""

    def __init__(self, vocab_size):
        self.vocab_size = vocab_size

    def step(self, ids, state=None):
        before = state or 0
        places = before + 1 + torch.arange(ids.shape[-1])
        p = torch.full((ids.shape[-1], self.vocab_size), 0.5 / (self.vocab_size - 1), dtype=torch.float64)
        p[torch.arange(ids.shape[-1]), places % self.vocab_size] = 0.5
        return p.log().expand(*ids.shape, self.vocab_size), before + ids.shape[-1]


class TableTranslator(SequenceToSequenceModel):
    """P(next | last token) from a table, whatever the source. It notes how many hypotheses each step went on with."""

    pad_id, start_id, end_id, source_pad_id = 0, 1, 2, 0

    def __init__(self, table):
        self.table = torch.as_tensor(table, dtype=torch.float64)
        self.vocab_size = len(self.table)
        self.sizes = []

    def encode(self, source):
        return source

    def step(self, ids, memory, state=None):
        self.sizes.append(len(ids))
        return self.table.log()[ids], (state or 0) + ids.shape[-1]

    def choose(self, rows, memory, state):
        return memory, state
