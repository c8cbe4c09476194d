"""
What is wrong with a setting, in the reader's language: the same sentences as `datafari-rag check`, translated.

The core speaks English and knows no catalogue. A sentence is found here by its form, and what stands in its places is
found the same way; a form that is not here stays as it came.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from datafari_rag.web.pages.locale import Translate

_PLACE = re.compile(r"{(\w+)}")
_KINDS = {"key": r"[\w.]+", "value": r"\".*\"", "low": r"[\d.e+-]+", "high": r"[\d.e+-]+", "quoted": r"\"[^\"]*\""}
"""How a place is filled where any text will not do; such a text is somebody's own and never translated."""


def spoken(message: str, translate: Translate) -> str:
    """Return *message* with every known form in it translated."""
    for form in forms(str):
        found = _pattern(form).fullmatch(message)
        if found is not None:
            places = found.groupdict().items()
            told = {name: text if name in _KINDS else spoken(text, translate) for name, text in places}
            return _filled(translate(form), told)
    return message


def _filled(form: str, told: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: told[place[1]], form)


@lru_cache(maxsize=256)
def _pattern(form: str) -> re.Pattern[str]:
    parts = _PLACE.split(form)
    texts = [re.escape(text) for text in parts[::2]]
    places = [f"(?P<{name}>{_KINDS.get(name, '.+')})" for name in parts[1::2]]
    return re.compile("".join(text + place for text, place in zip(texts, [*places, ""], strict=True)), re.DOTALL)


def forms(_: Translate) -> tuple[str, ...]:
    """Return every form, the more special before the more general."""
    return (*_hints(_), *_of_values(_), *_between_settings(_), *_of_browsers(_), *_of_parts(_), *_phrases(_))


def _hints(_: Translate) -> tuple[str, ...]:
    return (
        _("{problem} A backslash is written as two."),
        _("{problem} A comment needs a line of its own."),
        _("{problem} Leave out the quotation marks."),
    )


def _of_values(_: Translate) -> tuple[str, ...]:
    return (
        _("Invalid value for {key} property: {value}. {wanted}"),
        _("Invalid value for {key} property. {wanted}"),
        _("An integer is expected."),
        _("A number between {low} and {high} is expected."),
        _("Valid values are {values}."),
        _("The environment variable {name} is not set."),
        _("The file {name} cannot be read."),
        _("The file {name} is too long for a secret."),
    )


def _between_settings(_: Translate) -> tuple[str, ...]:
    return (
        _("false is expected, because server.host is not this machine alone."),
        _("With true, chat.memory.secret is expected."),
        _("A field without access rights is expected."),
        _("At most one name for each endpoint of llm.fallback is expected."),
        _("At most one token for each endpoint of llm.fallback is expected."),
        _("With jwt, security.jwt.jwks or security.jwt.secret is expected."),
        _('With security.jwt.jwks, "RS256" or its like is expected.'),
        _('"HS256" and its like need security.jwt.secret.'),
        _("With claims, security.identity=jwt is expected."),
        _("The embedded index has no ManifoldCF component: tokens is expected."),
        _("With authority, security.authority.url is expected."),
        _("Fields of the access rights are never filtered or counted on."),
    )


def _of_browsers(_: Translate) -> tuple[str, ...]:
    return (
        _("{key} can be changed in the settings file only."),
        _("A reference in {key} can be written in the settings file only."),
    )


def _of_parts(_: Translate) -> tuple[str, ...]:
    return (
        _("The search engine is not available at the moment."),
        _("The search engine is not available at the moment. ({cause})"),
        _("The search engine did not answer in time."),
        _("The search engine did not answer in time. ({cause})"),
        _("The language model refused the request."),
        _("The language model is not available at the moment."),
        _("The language model's answer could not be read."),
        _("The language model is busy. Try again in a moment."),
        _("The language model did not answer in time."),
        _("The audit folder (audit.folder) cannot be written to."),
        _("The users file (security.tokens.file) cannot be read, or is not JSON of user to list of tokens."),
        _("The keys of the identity provider (security.jwt.jwks) cannot be read: {cause}."),
        _("The authority service (security.authority.url) gives no rights: {cause}."),
    )


def _phrases(_: Translate) -> tuple[str, ...]:
    """Return what values can be; a list of quoted words comes last, word by word from its end."""
    return (
        _("texts without control characters"),
        _("texts of at least 16 characters"),
        _("names of HTTP headers"),
        _("names of claims"),
        _("names of collections"),
        _("names of fields"),
        _("paths of request handlers such as /select"),
        _("paths of files"),
        _("paths of text files that can be read"),
        _("host names and IP addresses"),
        _("http(s) addresses"),
        _("http(s) addresses and paths of files"),
        _("http(s) addresses of a /v1/embeddings, and onnx:FOLDER"),
        _("lists of two-letter codes of languages such as en,fr"),
        _("http(s) addresses and {quoted}"),
        _("lists of http(s) addresses, of which the last may be {quoted}"),
        _("lists of IP networks such as 10.0.0.0/8"),
        _("lists of HOST and HOST:PORT, such as localhost, search.example.org:8080 and [::1]"),
        _("lists of origins such as https://search.example.org, and {quoted}"),
        _("lists of NAME and NAME=SOLR-URL, each name once"),
        _("lists of names of fields, separated by commas"),
        _("lists of user names, separated by commas"),
        _("lists of names, separated by commas"),
        _("lists, separated by commas"),
        _("http(s)://HOST/solr/COLLECTION, several of them separated by commas, {zookeeper} and {embedded}"),
        _("estimate and tiktoken:ENCODING"),
        _("{several} and {quoted}"),
    )
