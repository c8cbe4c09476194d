"""
Datafari 7's AI API: `POST /rest/v2.0/ai` whole and `/rest/v2.0/ai/stream` as events, one action a request.

    action.py     the actions, one row each, and their four functions
    asking.py     a request into an ask
    failures.py   what failed, by the labels of Datafari
    replies.py    the whole reply, and what its parts and the events share
    events.py     the events of a stream, in their order
"""
