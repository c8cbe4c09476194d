"""Flask: routes, admin, pages, metrics, limits."""
