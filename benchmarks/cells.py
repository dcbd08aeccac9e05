"""Our recurrent cells in a Python loop against PyTorch's fused layers: one forward and backward pass."""

import torch
from torch import nn

from benchmarks.measure import Row, ratio
from transformer_lib.parts.recurrent import GRUCell, LSTMCell, RNNCell, unroll

PAIRS = ((RNNCell, nn.RNN), (LSTMCell, nn.LSTM), (GRUCell, nn.GRU))


def against_pytorch(
    batch: int = 64, n: int = 128, d_x: int = 64, widths: tuple[int, ...] = (64, 256), rounds: int = 7
) -> list[Row]:
    """Each cell at each width d_h, float32, one thread."""
    rows = []
    for d_h in widths:
        for cell_class, layer_class in PAIRS:
            torch.manual_seed(0)
            cell, layer = cell_class(d_x, d_h), layer_class(d_x, d_h, batch_first=True)
            X = torch.randn(batch, n, d_x)

            def ours(cell=cell, X=X):
                cell.zero_grad()
                unroll(cell, X)[0].sum().backward()

            def theirs(layer=layer, X=X):
                layer.zero_grad()
                layer(X)[0].sum().backward()

            times, seconds, seconds_theirs = ratio(ours, theirs, rounds)
            rows.append(
                Row(
                    f"{cell_class.__name__} in a loop / nn.{layer_class.__name__}, d_h = {d_h}",
                    times,
                    2.5,
                    False,
                    "times",
                    f"batch {batch}, n {n}, d_x {d_x}; {1e3 * seconds:.3g} ms and {1e3 * seconds_theirs:.3g} ms a step",
                )
            )
    return rows
