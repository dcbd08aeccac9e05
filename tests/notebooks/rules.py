"""All that holds in every notebook. Each rule takes a notebook and returns its faults, one line each.

tests/notebooks/test_rules.py holds every notebook to every rule; test_rules_can_fail.py shows that each rule can fail.
"""

from tests.notebooks.code_rules import CODE_RULES
from tests.notebooks.output_rules import OUTPUT_RULES
from tests.notebooks.prose_rules import PROSE_RULES

RULES = [*OUTPUT_RULES, *CODE_RULES, *PROSE_RULES]
