"""What documents prove of a text, and how it is said: statements, marks, labels, links, policies."""
