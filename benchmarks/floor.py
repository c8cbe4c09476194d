"""The floor of the service's own stack: a Flask view that asks the model with one `requests.post`, and does no more."""

from __future__ import annotations

import os

import flask
import requests

app = flask.Flask("floor")
session = requests.Session()
SENT = {"model": "stub", "messages": [{"role": "user", "content": "x" * 4000}]}


@app.get("/")
def ask() -> flask.Response:
    """Return what the model says to four thousand characters."""
    reply = session.post(os.environ["MODEL"], json=SENT, timeout=30)
    return flask.jsonify(reply.json()["choices"][0]["message"])
