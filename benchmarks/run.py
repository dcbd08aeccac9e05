"""Measure everything, print it, and write it into README.md; the exit status is 1 where a limit is not kept."""

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported

from benchmarks import cells, gpts, heads, imports, measure, ngrams, transformers, translating

BENCHMARKS = (
    ngrams.against_nltk,
    ngrams.order_6,
    cells.against_pytorch,
    translating.against_pytorch,
    translating.batched_greedy,
    translating.byte_pairs,
    heads.against_pytorch,
    heads.memory,
    transformers.against_pytorch,
    transformers.batched_beam,
    gpts.against_pytorch,
    gpts.cached,
    imports.beyond_torch,
)


def main() -> int:
    """Run every benchmark in turn."""
    import torch

    torch.set_num_threads(1)
    rows = []
    for benchmark in BENCHMARKS:
        for row in benchmark():
            print(row, flush=True)
            rows.append(row)
    measure.write(rows)
    return 0 if all(row.kept for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
