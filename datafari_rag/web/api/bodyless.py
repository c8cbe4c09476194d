"""The present request without its body, as plain values."""

from __future__ import annotations

from flask import request

from datafari_rag.protocols.request import Incoming


def bodyless() -> Incoming:
    """Return the request without a body, for what is decided before or without one."""
    query = {name: tuple(several) for name, several in request.args.lists()}
    headers = {name.lower(): value for name, value in request.headers.items()}
    return Incoming(request.path, query, headers=headers)
