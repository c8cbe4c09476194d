"""
Settings of where documents are and who may read them: `solr.*`, `security.*`.

Rows only. A value here that cannot be understood refuses to start (contract §8): no user is served under rights that
were not meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from datafari_rag.core.access import ACL_FIELDS, Mode
from datafari_rag.core.settings import addresses as addresses
from datafari_rag.core.settings import checks as checks
from datafari_rag.core.settings.records import AuthorityPatience, JwtClaims, SolrLimits
from datafari_rag.core.settings.row import mapping, secret, setting

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA"),
    *("HS256", "HS384", "HS512"),
)

FIELD_NAMES = (
    *("id", "title", "url", "exactContent", "preview_content", "content_prefix", "language", "last_modified"),
    *ACL_FIELDS,
)
"""The members of `solr.fields`: Datafari's names, each to be mapped to the schema's own."""


@dataclass(frozen=True, slots=True, repr=False)
class SolrSettings:
    """Rows of `solr.*`: the search engine."""

    url: str = setting(
        "solr.url",
        "http://localhost:8983/solr/FileShare",
        check=addresses.solr_url(),
        help="Where the documents are: http(s)://HOST/solr/COLLECTION (several URLs, separated by commas, are tried "
        "in turn), zookeeper://H1:2181,H2:2181/CHROOT#COLLECTION for SolrCloud, or embedded:FOLDER for the built-in "
        "index.",
    )
    handler: str = setting(
        "solr.handler", "/select", check=checks.search_handler(), help="Solr request handler used for searches."
    )
    limits: SolrLimits = setting(
        "solr.limits",
        SolrLimits(),
        check=checks.members(
            SolrLimits,
            connect_s=checks.number(0.01, 3600),
            wait_s=checks.number(0.01, 3600),
            retries=checks.integer(0, 10),
        ),
        help="How long Solr is waited for, in seconds: to connect, and for a response. retries: how often a failed "
        "search is repeated, on another node if there is one.",
    )
    shards_tolerant: bool = setting(
        "solr.shards.tolerant",
        False,
        check=checks.flag(),
        help="If a shard does not respond, answer from the other shards and say so in the answer. false: return an "
        "error.",
    )
    user: str = setting("solr.user", "", check=checks.text(), help="User name for Solr's basic authentication.")
    password: str = secret("solr.password", "", check=checks.text(), help="Password for Solr's basic authentication.")
    languages: tuple[str, ...] = setting(
        "solr.languages",
        ("en", "fr", "de", "es"),
        check=checks.names(),
        help="Languages with their own field in the schema, such as content_en.",
    )
    vector_collection: str = setting(
        "solr.vector.collection",
        "VectorMain",
        check=checks.collection(),
        help="Collection with the passages, in the same Solr as the collection of solr.url: Datafari's VectorMain, "
        "or a collection that datafari-rag passages sync maintains, with vectors or without.",
    )
    facets: tuple[str, ...] = setting(
        "solr.facets",
        ("extension", "language", "source", "last_modified"),
        check=checks.field_names(),
        help="Fields that callers may use for filters and facet counts. Fields with access rights are never allowed.",
    )
    fields: Mapping[str, str] = mapping(
        "solr.fields",
        MappingProxyType({}),
        check=checks.members(checks.frozen_mapping, **dict.fromkeys(FIELD_NAMES, checks.field_name())),
        help='Field names for a schema that differs from Datafari\'s, as a JSON object such as {"title": "dc_title"}: '
        "for id, title, url, exactContent, preview_content, content_prefix, language, last_modified and the six fields "
        "of rights.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class SecuritySettings:
    """Rows of `security.*`: who may see what."""

    identity: Literal["anonymous", "header", "jwt"] = setting(
        "security.identity",
        "anonymous",
        check=checks.choice("anonymous", "header", "jwt"),
        help="How callers are identified: not at all (anonymous), by a header from a trusted proxy (header), or by a "
        "signed token (jwt).",
    )
    header: str = setting(
        "security.header",
        "X-Remote-User",
        check=checks.header_name(),
        help="Header in which a trusted proxy names the user.",
    )
    trusted_proxies: tuple[str, ...] = setting(
        "security.trusted.proxies",
        ("127.0.0.1/32", "::1/128"),
        check=addresses.networks(),
        help="Networks from which that header is accepted. The header is removed from all other requests. Empty: it "
        "is never accepted.",
    )
    domain: str = setting(
        "security.domain",
        "",
        check=checks.text(),
        help="Domain that is added to user names without one: alice becomes alice@DOMAIN, as in Datafari.",
    )
    anonymous: Literal["public", "refuse"] = setting(
        "security.anonymous",
        "public",
        check=checks.choice("public", "refuse"),
        help="What anonymous callers get: the documents without access rights, or the error 401.",
    )
    mode: Mode = setting(
        "security.mode",
        "tokens",
        check=checks.choice("tokens", "plugin", "none"),
        help="What filters documents by access rights: this service (tokens), Solr's ManifoldCF component (plugin), "
        "or nothing (none: every caller sees every document; a warning is logged at startup).",
    )
    tokens: Literal["file", "authority", "claims"] = setting(
        "security.tokens",
        "file",
        check=checks.choice("file", "authority", "claims"),
        help="Where a user's access tokens come from: a file, ManifoldCF's authority service, or claims in the "
        "user's signed token.",
    )
    tokens_file: str = setting(
        "security.tokens.file",
        "",
        check=checks.path(),
        help='JSON file with a list of access tokens for each user, as {"alice": ["group:hr", "group:staff"]}; it is '
        "read again when it changes. Empty: no user has tokens.",
    )
    authority_url: str = setting(
        "security.authority.url",
        "",
        check=addresses.url(is_optional=True),
        help="URL of ManifoldCF's authority service; /UserACLs is added to it.",
    )
    authority_limits: AuthorityPatience = setting(
        "security.authority.limits",
        AuthorityPatience(),
        check=checks.members(AuthorityPatience, connect_s=checks.number(0.01, 3600), wait_s=checks.number(0.01, 3600)),
        help="How long the authority service is waited for, in seconds: to connect, and for a response.",
    )
    cache_s: float = setting(
        "security.cache_s",
        60.0,
        check=checks.number(0, 86_400),
        help="How long a user's access tokens are cached, in seconds. 0: they are looked up for every request.",
    )
    revocations_file: str = setting(
        "security.revocations.file",
        "",
        check=checks.path(),
        help="File that keeps revoked rights (POST /admin/revoke); several servers may share it. Empty: kept until the "
        "service stops.",
    )
    jwt_jwks: str = setting(
        "security.jwt.jwks",
        "",
        check=addresses.path_or_url(),
        help="Public keys of the token issuer: a URL or a file (JWKS).",
    )
    jwt_header: tuple[str, ...] = setting(
        "security.jwt.header",
        ("Authorization",),
        check=checks.header_names(),
        help="Headers that may hold a user's token, such as X-OpenWebUI-User-Jwt. If a request has several tokens, "
        "they must name the same user.",
    )
    jwt_secret: str = secret(
        "security.jwt.secret",
        "",
        check=checks.text(),
        help="Secret shared with the issuer, for HS256 and similar algorithms.",
    )
    jwt_algorithms: tuple[str, ...] = setting(
        "security.jwt.algorithms",
        ("RS256", "ES256"),
        check=checks.names(allowed=ALGORITHMS),
        help="Accepted signature algorithms.",
    )
    jwt_issuer: str = setting(
        "security.jwt.issuer",
        "",
        check=checks.text(),
        help="Required issuer of a token. Empty: the issuer is not checked.",
    )
    jwt_audience: str = setting(
        "security.jwt.audience",
        "",
        check=checks.text(),
        help="Required audience of a token. Empty: the audience is not checked.",
    )
    jwt_claims: JwtClaims = setting(
        "security.jwt.claims",
        JwtClaims(),
        check=checks.members(JwtClaims, user=checks.claim(), tokens=checks.claim(), leeway_s=checks.number(0, 3600)),
        help="Claims of a token: the user's name, and the user's access tokens for security.tokens=claims. leeway_s: "
        "by how much the clocks of the issuer and this service may differ.",
    )
    admins: tuple[str, ...] = setting(
        "security.admins",
        (),
        check=checks.names("lists of user names, separated by commas"),
        help="Users who may open /admin and see how answers were made. Empty: no one.",
    )
