"""Work on whole documents: their central sentences, pieces for a model, prompts, and a summary that is proved."""
