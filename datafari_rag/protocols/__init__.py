"""
Dialects spoken to callers, pure: plain dicts in, asks and plain dicts out.

A protocol is a module with four functions:

    parse(incoming: Incoming, settings: Settings) -> Ask        raises core errors
    reply(answer: Answer, context: ReplyContext) -> dict         the whole answer
    stream(events: Iterator[Event], context) -> Iterator[dict]   a line each; a failure is the last line
    failure(error: RagError, rag: RagSettings) -> (int, dict)     HTTP status and body before the first line

A module may have three more: `accepts` says whether a request is its own, where one path has two protocols; `softened`
names the failures that are answers here; `fallback` says what goes to the model as it came when nothing was found.

Turning dicts into bytes is the edge's; the route's row names the encoding.
"""
