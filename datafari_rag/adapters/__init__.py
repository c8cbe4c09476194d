"""The world outside behind the ports; one library a file."""
