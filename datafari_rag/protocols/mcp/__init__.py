"""
Model Context Protocol (MCP), revisions 2026-07-28 and those with `initialize` up to 2025-11-25: what agents call.

    messages.py     JSON-RPC: a request, its revision, what is wrong with it, and the envelopes of replies
    tools.py        the tools: texts, records of what they take and give, and how arguments become an ask
    replies.py      results bounded in tokens, and the tools that write

No session, no state between two requests, and nothing of a request names its user.
"""
