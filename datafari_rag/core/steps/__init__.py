"""Search in steps: what to search for next, the plan of a model, the order of all that was found, and budgets."""
