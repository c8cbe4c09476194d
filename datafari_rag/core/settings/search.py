"""
Settings of where documents are and who may read them: `solr.*`, `security.*`.

A value here that cannot be understood refuses to start (contract §8): no user is served under rights that were not
meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from datafari_rag.core.access import ACL_FIELDS, Mode
from datafari_rag.core.settings.addresses import Networks, PathOrUrl, SolrUrl, Url
from datafari_rag.core.settings.checks import (
    Fixed,
    Group,
    Names,
    PathName,
    Seconds,
    Secret,
    items,
    json_object,
    matching,
    needed,
)

FIELD_NAMES = (
    *("id", "title", "url", "exactContent", "preview_content", "content_prefix", "language", "last_modified"),
    *ACL_FIELDS,
)
"""The members of `solr.fields`: Datafari's names, each to be mapped to the schema's own."""

_FIELD = r"[A-Za-z_][A-Za-z0-9_.-]*"
_HEADER = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"


def _fields(names: dict[str, Any], folder: str) -> dict[str, Any]:
    needed(not names.keys() - set(FIELD_NAMES) and all(re.fullmatch(_FIELD, name) for name in names.values()))
    return names


class SolrLimits(Group, frozen=True):
    """How long Solr is waited for, in seconds, and how often a failed search is repeated."""

    wait_s: Seconds = 10.0
    """Maximum wait for a response of Solr, or of the authority, in seconds."""
    connect_s: Fixed[float] = 2.0
    """A server in the same network accepts a connection in milliseconds."""
    retries: Fixed[int] = 1
    """A second node may answer; a third try would only add load to a failing cluster."""


class SolrSettings(Group, frozen=True):
    """The search engine."""

    url: SolrUrl = "http://localhost:8983/solr/FileShare"
    """http(s)://HOST/solr/COLLECTION (several after commas), zookeeper://HOST:2181#COLLECTION, or embedded:FOLDER."""
    handler: Annotated[
        str,
        matching("(?:/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+", "paths of request handlers such as /select", is_optional=False),
    ] = "/select"
    """Solr request handler used for searches."""
    limits: SolrLimits = SolrLimits()
    shards_tolerant: bool = field(name="shards.tolerant", default=False)
    """If a shard does not respond, answer from the others and say so. false: return an error."""
    user: str = ""
    """User name for Solr's basic authentication."""
    password: Secret = ""
    """Password for Solr's basic authentication."""
    vector_collection: Annotated[
        str, matching("[A-Za-z0-9_][A-Za-z0-9_.-]*", "names of collections", is_optional=False)
    ] = field(name="vector.collection", default="VectorMain")
    """Collection with the passages, in the same Solr: Datafari's, or one that datafari-rag passages sync maintains."""
    facets: Annotated[tuple[str, ...], items("names of fields", _FIELD)] = (
        "extension",
        "language",
        "source",
        "last_modified",
    )
    """Fields that callers may use for filters and facet counts; never those of access rights."""
    fields: Annotated[
        Mapping[str, str], json_object(_fields, f"with names of fields for some of {', '.join(FIELD_NAMES)}")
    ] = field(default_factory=dict)
    """Field names of a schema that differs from Datafari's, as {"title": "dc_title"}."""


class JwtClaims(Group, frozen=True):
    """The claims that name a token's user and access tokens."""

    user: Annotated[str, matching(".+", "names of claims", is_optional=False)] = "preferred_username"
    """Claim with the user's name."""
    tokens: Annotated[str, matching(".+", "names of claims", is_optional=False)] = "groups"
    """Claim with the user's access tokens, for security.tokens=claims."""
    leeway_s: Fixed[float] = 30.0
    """By how much the clocks of the issuer and this service may differ, in seconds."""


class SecuritySettings(Group, frozen=True):
    """Who may see what."""

    identity: Literal["anonymous", "header", "jwt", "demo"] = "anonymous"
    """Who callers are: unknown, as a trusted proxy's header or a signed token (jwt) says, or as a demo's menu says."""
    header: Annotated[str, matching(_HEADER, "names of HTTP headers", is_optional=False)] = "X-Remote-User"
    """Header in which a trusted proxy names the user."""
    trusted_proxies: Networks = field(name="trusted.proxies", default=("127.0.0.1/32", "::1/128"))
    """Networks from which that header is accepted; it is removed from all other requests."""
    domain: str = ""
    """Domain that is added to user names without one: alice becomes alice@DOMAIN, as in Datafari."""
    anonymous: Literal["public", "refuse"] = "public"
    """What anonymous callers get: the documents without access rights, or the error 401."""
    mode: Mode = "tokens"
    """What filters documents by rights: this service (tokens), Solr's ManifoldCF component (plugin), or nothing."""
    tokens: Literal["file", "authority", "claims"] = "file"
    """Where a user's access tokens come from: a file, ManifoldCF's authority, or the signed token."""
    tokens_file: PathName = field(name="tokens.file", default="")
    """JSON file with the access tokens of each user, as {"alice": ["group:hr"]}. Empty: no user has tokens."""
    authority_url: Url = field(name="authority.url", default="")
    """URL of ManifoldCF's authority service; /UserACLs is added to it."""
    cache_s: Annotated[float, Meta(ge=0, le=86_400)] = 60.0
    """Seconds for which a user's access tokens are cached. 0: never."""
    revocations_file: PathName = field(name="revocations.file", default="")
    """File that keeps revoked rights (POST /admin/revoke); servers may share it. Empty: kept until a restart."""
    jwt_jwks: PathOrUrl = field(name="jwt.jwks", default="")
    """Public keys of the token issuer: a URL or a file (JWKS)."""
    jwt_header: Annotated[tuple[str, ...], items("names of HTTP headers", _HEADER, is_optional=False)] = field(
        name="jwt.header", default=("Authorization",)
    )
    """Headers that may hold a user's token, such as X-OpenWebUI-User-Jwt; several tokens must name the same user."""
    jwt_secret: Secret = field(name="jwt.secret", default="")
    """Secret shared with the issuer, for HS256 and similar algorithms."""
    jwt_issuer: str = field(name="jwt.issuer", default="")
    """Required issuer of a token. Empty: the issuer is not checked."""
    jwt_audience: str = field(name="jwt.audience", default="")
    """Required audience of a token. Empty: the audience is not checked."""
    jwt_claims: JwtClaims = field(name="jwt.claims", default=JwtClaims())
    admins: Names = ()
    """Users who may open /admin and see how answers were made. Empty: no one."""
