"""Language models: endpoints, retries, circuit breaker, fallback."""
