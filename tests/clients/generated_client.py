"""A client that a generator made of /openapi.json calls /retrieve; prints what it was given. Run by the suite."""

import json
import sys

from rag_client import AuthenticatedClient
from rag_client.api.answers import post_retrieve
from rag_client.models import RetrieveError, RetrieveReply, RetrieveRequest

QUESTION = "How are Enums and Flags different?"


def retrieved(user, documents):
    client = AuthenticatedClient(sys.argv[1], user, prefix="", auth_header_name="X-Remote-User")
    with client:
        body = RetrieveRequest(question=QUESTION, documents=documents, passages=5)
        return post_retrieve.sync_detailed(client=client, body=body)


def ids(user, documents):
    found = retrieved(user, documents).parsed
    assert isinstance(found, RetrieveReply)
    return sorted({one.document.id for one in found.passages})


first = retrieved("alice", ["py-howto-enum"]).parsed.passages[0]
refused = retrieved("alice", [str(number) for number in range(1001)])
assert isinstance(refused.parsed, RetrieveError)
json.dump(
    {
        "alice": ids("alice", ["py-howto-enum", "absent"]),
        "bob": ids("bob", ["py-howto-enum", "absent"]),
        "nothing": ids("alice", []),
        "text": first.text,
        "start": first.start,
        "end": first.end,
        "error": [refused.parsed.error.label, refused.parsed.error.field, int(refused.status_code)],
    },
    sys.stdout,
)
