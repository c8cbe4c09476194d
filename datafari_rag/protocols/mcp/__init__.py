"""
Model Context Protocol (MCP), revisions 2026-07-28 and those with `initialize` up to 2025-11-25: what agents call.

    messages.py     a JSON-RPC request, its revision, and what is wrong with it
    arguments.py    the arguments of a tool, read one by one
    tools.py        the tools: name, texts, schemas
    results.py      results of tools, bounded in tokens
    replies.py      envelopes, lists, and what failed
    answer.py       the tool `answer` as a dialect of the pipeline

No session, no state between two requests, and nothing of a request names its user.
"""
