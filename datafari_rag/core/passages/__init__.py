"""From documents to what the model sees: evidence, selection, budgets."""
