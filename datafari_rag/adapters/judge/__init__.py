"""The second judge over HTTP."""
