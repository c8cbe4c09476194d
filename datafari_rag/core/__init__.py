"""Rules and values, pure: same input, same output; never a clock, a file, the network, a log or a framework."""
