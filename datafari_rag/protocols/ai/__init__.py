"""
Datafari 7's AI API: `POST /rest/v2.0/ai` whole and `/rest/v2.0/ai/stream` as events, one action a request.

    action.py          the actions, one row each with their four functions, and a request into an ask
    replies.py         the whole reply, the events of a stream in their order, and what failed by Datafari's labels
    conversations.py   the list of conversations, and one of them opened
"""
