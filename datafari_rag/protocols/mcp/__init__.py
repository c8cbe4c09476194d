"""
Model Context Protocol (MCP), revisions 2026-07-28 and those with `initialize` up to 2025-11-25: what agents call.

    messages.py     a JSON-RPC request, its revision, and what is wrong with it
    tools.py        the tools: name, texts, records of what they take and give
    replies.py      results bounded in tokens, envelopes, lists, and what failed

No session, no state between two requests, and nothing of a request names its user.
"""
