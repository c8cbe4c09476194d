"""
Settings of where documents are and who may read them: `solr.*`, `security.*`.

Rows only. A value here that cannot be understood refuses to start (contract §8): nobody is served under rights that
were not meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from datafari_rag.core.access import Mode
from datafari_rag.core.messages import message
from datafari_rag.core.settings import addresses as addresses
from datafari_rag.core.settings import checks as checks
from datafari_rag.core.settings.dialects import DialectSettings
from datafari_rag.core.settings.row import prefix, secret, setting

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA"),
    *("HS256", "HS384", "HS512"),
)


@dataclass(frozen=True, slots=True, repr=False)
class SearchSettings(DialectSettings):
    """Rows of the search engine and of security; a chain, because slotted classes have one base."""

    solr_url: str = setting(
        "solr.url",
        "http://localhost:8983/solr/FileShare",
        check=addresses.solr_url(),
        help="Where the documents are: http(s)://HOST/solr/COLLECTION (several separated by commas are tried in turn), "
        "zookeeper://H1:2181,H2:2181/CHROOT#COLLECTION for SolrCloud, or embedded:FOLDER for the built-in index.",
    )
    solr_handler: str = setting(
        "solr.handler",
        "/select",
        check=checks.search_handler(),
        help="Request handler of the collection that searches.",
    )
    solr_connect_timeout_s: float = setting(
        "solr.connect_timeout_s",
        2.0,
        check=checks.number(0.01, 3600),
        help="Longest wait for a connection to Solr, in seconds.",
        browser=True,
    )
    solr_timeout_s: float = setting(
        "solr.timeout_s",
        10.0,
        check=checks.number(0.01, 3600),
        help="Longest wait for Solr's answer, in seconds.",
        browser=True,
    )
    solr_retries: int = setting(
        "solr.retries",
        1,
        check=checks.integer(0, 10),
        help="How often a failed search is repeated, on another node where there is one.",
        browser=True,
    )
    solr_shards_tolerant: bool = setting(
        "solr.shards.tolerant",
        False,
        check=checks.flag(),
        help="Answer from the rest of the collection when a shard is missing; the answer says so. false: an error.",
        browser=True,
    )
    solr_user: str = setting("solr.user", "", check=checks.text(), help="User name for Solr's basic authentication.")
    solr_password: str = secret(
        "solr.password", "", check=checks.text(), help="Password for Solr's basic authentication."
    )
    solr_tls_ca: str = setting(
        "solr.tls.ca",
        "",
        check=checks.path(),
        help="PEM file of the authorities that sign Solr's certificate. Empty: those of the system.",
    )
    solr_tls_cert: str = setting(
        "solr.tls.cert", "", check=checks.path(), help="PEM file of our own certificate for Solr, when it asks for one."
    )
    solr_tls_key: str = setting(
        "solr.tls.key",
        "",
        check=checks.path(),
        help="PEM file of the key of that certificate. Empty: it is in the same file.",
    )
    solr_tls_verify: bool = setting(
        "solr.tls.verify",
        True,
        check=checks.flag(),
        help="Check Solr's certificate. false is for tests only; a warning is logged at startup.",
    )
    solr_languages: tuple[str, ...] = setting(
        "solr.languages",
        ("en", "fr", "de", "es"),
        check=checks.names(),
        help="Languages for which the schema has a field of its own, such as content_en.",
    )
    solr_vector_collection: str = setting(
        "solr.vector.collection",
        "VectorMain",
        check=checks.collection(),
        help="Collection of passages beside that of solr.url, in the same Solr: Datafari's VectorMain, or one that "
        "datafari-rag passages sync keeps. Used where embeddings.endpoint is set.",
    )
    solr_vector_field: str = setting(
        "solr.vector.field",
        "",
        check=checks.field_name(is_optional=True),
        help="Field of the passages' vectors. Empty: vector_N, with N the dimensions of the embedding model.",
    )
    solr_top_k: int = setting(
        "solr.topK",
        100,
        check=checks.integer(1, 1000),
        help="How many nearest passages Solr is asked for. Documents are made of them, so it is several times "
        "rag.candidates.",
    )
    solr_facets: tuple[str, ...] = setting(
        "solr.facets",
        ("extension", "language", "source", "last_modified"),
        check=checks.field_names(),
        help="Fields that callers may filter and count on. Fields of the access rights are never among them.",
    )
    solr_field: Mapping[str, str] = prefix(
        "solr.field",
        check=checks.field_name(),
        help="Names of fields in a schema that is not Datafari's: solr.field.title=dc_title and so on, for id, title, "
        "url, exactContent, preview_content, content_prefix, language, last_modified and the six fields of rights.",
    )

    security_identity: Literal["anonymous", "header", "jwt"] = setting(
        "security.identity",
        "anonymous",
        check=checks.choice("anonymous", "header", "jwt"),
        help="How a caller is known: not at all, by a header of a trusted proxy, or by a signed token (JWT).",
    )
    security_header: str = setting(
        "security.header",
        "X-Remote-User",
        check=checks.header_name(),
        help="Header in which a trusted proxy names the user.",
    )
    security_trusted_proxies: tuple[str, ...] = setting(
        "security.trusted.proxies",
        ("127.0.0.1/32", "::1/128"),
        check=addresses.networks(),
        help="Networks from which that header is believed. From elsewhere it is removed. Empty: believed from nowhere.",
    )
    security_domain: str = setting(
        "security.domain",
        "",
        check=checks.text(),
        help="Domain that is added to user names without one: alice becomes alice@DOMAIN, as Datafari does.",
    )
    security_anonymous: Literal["public", "refuse"] = setting(
        "security.anonymous",
        "public",
        check=checks.choice("public", "refuse"),
        help="What a caller without a name gets: the documents on which no rights are set, or the error 401.",
    )
    security_mode: Mode = setting(
        "security.mode",
        "tokens",
        check=checks.choice("tokens", "plugin", "none"),
        help="Who filters by rights: this service (tokens), Solr's ManifoldCF component (plugin), or nothing "
        "(none: every caller sees every document; a warning is logged at startup).",
    )
    security_tokens: Literal["file", "authority", "claims"] = setting(
        "security.tokens",
        "file",
        check=checks.choice("file", "authority", "claims"),
        help="Where a user's access tokens come from: a file, ManifoldCF's authority service, or his own signed token.",
    )
    security_tokens_file: str = setting(
        "security.tokens.file",
        "",
        check=checks.path(),
        help="JSON file with a list of tokens for each user; read again when it changes. Empty: no user has tokens.",
    )
    security_authority_url: str = setting(
        "security.authority.url",
        "",
        check=addresses.url(is_optional=True),
        help="Address of ManifoldCF's authority service, to which /UserACLs is added.",
    )
    security_authority_connect_timeout_s: float = setting(
        "security.authority.connect_timeout_s",
        2.0,
        check=checks.number(0.01, 3600),
        help="Longest wait for a connection to the authority service, in seconds.",
    )
    security_authority_timeout_s: float = setting(
        "security.authority.timeout_s",
        10.0,
        check=checks.number(0.01, 3600),
        help="Longest wait for its answer, in seconds.",
    )
    security_cache_s: float = setting(
        "security.cache_s",
        60.0,
        check=checks.number(0, 86_400),
        help="How long a user's tokens are remembered, in seconds. 0: looked up for every request.",
    )
    security_revocations_file: str = setting(
        "security.revocations.file",
        "",
        check=checks.path(),
        help="File that keeps revoked rights (POST /admin/revoke); several servers may share it. Empty: kept until the "
        "service stops.",
    )
    security_jwt_jwks: str = setting(
        "security.jwt.jwks",
        "",
        check=addresses.path_or_url(),
        help="Public keys of the issuer of the tokens: an address or a file (JWKS).",
    )
    security_jwt_header: tuple[str, ...] = setting(
        "security.jwt.header",
        ("Authorization",),
        check=checks.header_names(),
        help="Headers that hold a user's token, such as X-OpenWebUI-User-Jwt. Several tokens must name one user.",
    )
    security_jwt_secret: str = secret(
        "security.jwt.secret",
        "",
        check=checks.text(),
        help="Shared secret of the issuer, for HS256 and similar algorithms.",
    )
    security_jwt_algorithms: tuple[str, ...] = setting(
        "security.jwt.algorithms",
        ("RS256", "ES256"),
        check=checks.names(allowed=ALGORITHMS),
        help="Signatures that are accepted.",
    )
    security_jwt_issuer: str = setting(
        "security.jwt.issuer", "", check=checks.text(), help="Issuer that a token must name. Empty: not checked."
    )
    security_jwt_audience: str = setting(
        "security.jwt.audience", "", check=checks.text(), help="Audience that a token must name. Empty: not checked."
    )
    security_jwt_user_claim: str = setting(
        "security.jwt.user_claim",
        "preferred_username",
        check=checks.claim(),
        help="Claim of the token that holds the user's name.",
    )
    security_jwt_tokens_claim: str = setting(
        "security.jwt.tokens_claim",
        "groups",
        check=checks.claim(),
        help="Claim of the token that holds his access tokens, for security.tokens=claims.",
    )
    security_jwt_leeway_s: float = setting(
        "security.jwt.leeway_s",
        30.0,
        check=checks.number(0, 3600),
        help="How far the clocks of issuer and service may differ, in seconds.",
    )
    security_jwt_cache_s: float = setting(
        "security.jwt.cache_s",
        300.0,
        check=checks.number(1, 86_400),
        help="How long the issuer's keys are remembered, in seconds; an unknown key is looked up immediately.",
    )
    security_admins: tuple[str, ...] = setting(
        "security.admins",
        (),
        check=checks.names(message("lists of user names, separated by commas")),
        help="Users who may open /admin and see how answers were made. Empty: nobody.",
    )
    security_answer_links: Literal["documents", "none"] = setting(
        "security.answer.links",
        "documents",
        check=checks.choice("documents", "none"),
        help="Links that an answer may carry: to its own documents alone, or none. Others become plain text.",
    )
