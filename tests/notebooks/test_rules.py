"""Every notebook obeys every rule."""

import pytest

from tests.notebooks.book import Book
from tests.notebooks.rules import RULES
from tools.notebooks import ROOT, all_notebooks

NOTEBOOKS = [pytest.param(path, id=path.relative_to(ROOT).as_posix()) for path in all_notebooks()]


@pytest.mark.parametrize("path", NOTEBOOKS)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_holds(rule, path):
    faults = rule(Book.read(path))
    assert not faults, "\n" + "\n".join(faults)
