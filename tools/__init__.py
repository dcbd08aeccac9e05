"""The project's own tools, run as `python -m tools.NAME`; the library and the notebooks need none of them."""
