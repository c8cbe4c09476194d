"""Addresses that can be meant, and those that cannot."""

from __future__ import annotations

import pytest

from datafari_rag.core.settings import addresses as addresses
from datafari_rag.core.settings.checks import Check

HTTP = "Valid values are http(s) addresses."
SOLR = (
    "Valid values are http(s)://HOST/solr/COLLECTION, several of them separated by commas, "
    "zookeeper://HOST:2181/CHROOT#COLLECTION and embedded:FOLDER."
)
ORIGINS = 'Valid values are lists of origins such as https://search.example.org, and "*".'
INDEXES = "Valid values are lists of NAME and NAME=SOLR-URL, each name once."
ENDPOINTS = 'Valid values are lists of http(s) addresses, of which the last may be "builtin:extractive".'

TAKEN = [
    pytest.param(addresses.host(), "0.0.0.0", "0.0.0.0", id="an address to listen on"),
    pytest.param(addresses.host(), "[::1]", "[::1]", id="one of IPv6"),
    pytest.param(addresses.url(), "http://h:1/x?y#z", "http://h:1/x?y#z", id="a whole URL"),
    pytest.param(addresses.url(is_optional=True), "", "", id="no URL where it may be absent"),
    pytest.param(addresses.path_or_url(), "https://h/keys", "https://h/keys", id="keys at an address"),
    pytest.param(addresses.path_or_url(), "file:keys.json", "/etc/rag/keys.json", id="keys in a named file"),
    pytest.param(addresses.path_or_url(), "file:///k.json", "/k.json", id="keys by a file URL"),
    pytest.param(addresses.path_or_url(), "keys.json", "/etc/rag/keys.json", id="keys beside the file"),
    pytest.param(addresses.path_or_url(), "", "", id="no keys"),
    pytest.param(addresses.endpoint(), "builtin:extractive", "builtin:extractive", id="the built-in model"),
    pytest.param(
        addresses.endpoint(), "https://<HOST>:1/x", "https://<HOST>:1/x", id="a placeholder is only warned of"
    ),
    pytest.param(addresses.endpoints(), "", (), id="no fallback"),
    pytest.param(
        addresses.endpoints(),
        "http://a/v1, builtin:extractive",
        ("http://a/v1", "builtin:extractive"),
        id="the built-in model last",
    ),
    pytest.param(addresses.networks(), "10.1.2.3/8, ::1", ("10.0.0.0/8", "::1/128"), id="networks and addresses"),
    pytest.param(addresses.networks(), "", (), id="no network"),
    pytest.param(
        addresses.hosts(), "LocalHost, a:80,::1,[::1]:80,a:80", ("localhost", "a:80", "[::1]", "[::1]:80"), id="hosts"
    ),
    pytest.param(addresses.hosts(), "", (), id="any host"),
    pytest.param(addresses.origins(), "*", ("*",), id="any origin"),
    pytest.param(addresses.origins(), "HTTPS://A.example/,http://b:81", ("https://a.example", "http://b:81"), id="two"),
    pytest.param(addresses.solr_url(), "http://h:8983/solr/c/", "http://h:8983/solr/c", id="a collection"),
    pytest.param(
        addresses.solr_url(), "http://a/solr/c, http://b/solr/c", "http://a/solr/c,http://b/solr/c", id="in turn"
    ),
    pytest.param(
        addresses.solr_url(), "zookeeper://z1:2181,z2/root#Files", "zookeeper://z1:2181,z2/root#Files", id="SolrCloud"
    ),
    pytest.param(addresses.solr_url(), "embedded:index", "embedded:/etc/rag/index", id="a relative embedded folder"),
    pytest.param(addresses.solr_url(), "embedded:/var/i", "embedded:/var/i", id="an absolute embedded folder"),
    pytest.param(addresses.indexes(), "", {}, id="no index"),
    pytest.param(
        addresses.indexes(),
        "default, hr = http://h/solr/hr , law=zookeeper://a:1,b:2/r#law,x",
        {"default": "", "hr": "http://h/solr/hr", "law": "zookeeper://a:1,b:2/r#law", "x": ""},
        id="commas inside an address",
    ),
]

HOSTS = "Valid values are lists of HOST and HOST:PORT, such as localhost, search.example.org:8080 and [::1]."

REFUSED = [
    pytest.param(addresses.host(), "a b", "Valid values are host names and IP addresses.", id="a blank in a host"),
    pytest.param(addresses.url(), "", HTTP, id="no URL"),
    pytest.param(addresses.url(), "ftp://h/", HTTP, id="another scheme"),
    pytest.param(addresses.url(), "http://", HTTP, id="no host"),
    pytest.param(addresses.url(), "http://h:99999/", HTTP, id="no such port"),
    pytest.param(addresses.url(), "http://[::1/", HTTP, id="half a bracket"),
    pytest.param(addresses.url(), "http://h/a b", HTTP, id="a blank inside"),
    pytest.param(
        addresses.path_or_url(), "ldap://h", "Valid values are http(s) addresses and paths of files.", id="no such keys"
    ),
    pytest.param(
        addresses.path_or_url(), "a\tb", "Valid values are http(s) addresses and paths of files.", id="a tab in a file"
    ),
    pytest.param(
        addresses.endpoint(),
        "api.openai.com",
        'Valid values are http(s) addresses and "builtin:extractive".',
        id="no scheme",
    ),
    pytest.param(addresses.endpoints(), "builtin:extractive,http://a/", ENDPOINTS, id="something after the last"),
    pytest.param(addresses.endpoints(), "x", ENDPOINTS, id="no endpoint"),
    pytest.param(
        addresses.networks(),
        "10.0.0.0/33",
        "Valid values are lists of IP networks such as 10.0.0.0/8.",
        id="no network",
    ),
    pytest.param(addresses.hosts(), "http://a", HOSTS, id="an address is no host"),
    pytest.param(addresses.hosts(), "a,*", HOSTS, id="a star is no host"),
    pytest.param(addresses.origins(), "https://a/x", ORIGINS, id="a path is no origin"),
    pytest.param(addresses.origins(), "https://u@a", ORIGINS, id="a user is no origin"),
    pytest.param(addresses.origins(), "*,https://a", ORIGINS, id="any and one"),
    pytest.param(addresses.solr_url(), "", SOLR, id="no Solr"),
    pytest.param(addresses.solr_url(), "http://h:8983/", SOLR, id="no collection"),
    pytest.param(addresses.solr_url(), "http://h/solr/c?q=1", SOLR, id="a query in it"),
    pytest.param(addresses.solr_url(), "embedded:", SOLR, id="no folder"),
    pytest.param(addresses.solr_url(), "zookeeper://h:2181/solr", SOLR, id="no collection at ZooKeeper"),
    pytest.param(addresses.solr_url(), "zookeeper://h 1#c", SOLR, id="no ZooKeeper host"),
    pytest.param(addresses.indexes(), "a,a", INDEXES, id="a name twice"),
    pytest.param(addresses.indexes(), "a=ftp://h", INDEXES, id="no search engine"),
    pytest.param(addresses.indexes(), "a b", INDEXES, id="a blank in a name"),
]


@pytest.mark.parametrize(("check", "text", "value"), TAKEN)
def test_an_address_is_read(check: Check, text: str, value: object) -> None:
    assert check.read(text, "/etc/rag") == value


@pytest.mark.parametrize(("check", "text", "sentence"), REFUSED)
def test_another_text_is_told_what_was_wanted(check: Check, text: str, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        check.read(text, "/etc/rag")
    assert str(caught.value) == sentence
