"""What helps to set up clients of /mcp."""
