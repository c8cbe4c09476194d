"""What operators need: health, metrics, limits, headers, audit."""
