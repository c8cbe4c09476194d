"""A second judge of claims that comparing words does not prove: what it is sent, and what its word changes."""
