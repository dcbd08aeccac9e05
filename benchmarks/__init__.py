"""Speed, as ratios measured in one run on one computer: `python -m benchmarks.run` measures all, into README.md."""
