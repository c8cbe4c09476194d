"""Search in steps: further searches by rule, by the model's plan, or by its tools, within a budget."""
