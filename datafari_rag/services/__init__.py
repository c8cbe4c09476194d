"""Programs of their own: the /invoke service and the stub model."""
