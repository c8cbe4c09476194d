"""Pictures of text, where OCR is installed."""
