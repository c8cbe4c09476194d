"""What the service costs, beside its limits and its peers; `make bench`. Not part of the package."""
