"""The filters that a page of results names are never without end."""

from __future__ import annotations

from datafari_rag.web.pages.results import MAX_ACTIVE, active_filters, folders_of

LONG = [f"-title:{'a' * 600}{number}" for number in range(100)]


def test_a_request_of_long_filters_makes_no_page_a_hundred_times_as_long() -> None:
    active = active_filters({"q": ["copy"], "fq": LONG}, {})
    assert len(active) == MAX_ACTIVE
    assert sum(len(address) for _, address in active) < 25 * sum(map(len, LONG))


def test_a_folder_is_called_as_its_address_says_without_what_cannot_be_seen() -> None:
    """What an address escapes is as much a document's own text as a title."""
    folders = ("hr", "%00h%E2%80%AEr%E2%80%8B%0A", "", "%20", "<b>")
    reply = {"response": {"docs": [{"id": f"http://h/{folder}/file"} for folder in folders]}}

    shown = [choice.value for choice in folders_of(reply, {})["folder"]]

    assert shown == ["hr", "hr", "/", "/", "<b>"]


def test_a_folder_that_narrows_is_called_without_what_cannot_be_seen() -> None:
    ((shown, _),) = active_filters({"fq": ['folder:"http://h/%00h%E2%80%AEr%E2%80%8B/"']}, {"folder": "Folder"})

    assert shown == "Folder: http://h/hr/"
