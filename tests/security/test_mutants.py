"""
Proof that the property would notice: with the filter broken in each of these ways it fails.

A mutant replaces one function of the real code; the unchanged property runs on few cases, until it fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tantivy import Occur, Query

from datafari_rag import pipeline
from datafari_rag.adapters.embedded import queries, retriever
from datafari_rag.core.access import ACL_FIELDS, LEVELS, Filter, User, filter_for
from datafari_rag.core.solr import parameters
from tests.security.telling import Record, tell
from tests.security.test_nobody_learns import embedded_world, run, solr_world  # noqa: F401 - fixtures
from tests.security.worlds import World

CASES = 1050

Mutant = tuple[Any, str, Any]


def _without(level: str) -> tuple[str, ...]:
    return tuple(one for one in LEVELS if one != level)


def _inverted(access: Filter, schema: Any, *more: Any) -> Query:
    right = queries.rights_query(access, schema, *more)
    return Query.boolean_query([(Occur.Must, Query.all_query()), (Occur.MustNot, right or Query.empty_query())])


def _undenied(level: str, tokens: list[str], schema: Any, *more: Any) -> Query:
    allow, deny = f"allow_token_{level}", f"deny_token_{level}"
    unset = queries._all(Query.term_query(schema, field, "__nosecurity__") for field in (allow, deny))
    return Query.boolean_query([(Occur.Should, unset), (Occur.Should, Query.term_set_query(schema, allow, tokens))])


def _half_open(level: str, tokens: list[str], schema: Any, *more: Any) -> Query:
    """Take a level for open when its allow field alone says so."""
    allow, deny = f"allow_token_{level}", f"deny_token_{level}"
    either = Query.term_set_query(schema, allow, ["__nosecurity__", *tokens])
    return Query.boolean_query([(Occur.Must, either), (Occur.MustNot, Query.term_set_query(schema, deny, tokens))])


def _for_everybody(user: User, **rules: Any) -> Filter:
    return filter_for(User(user.name), **{**rules, "mode": "none"})


def _for_nobody(user: User, **rules: Any) -> Filter:
    return filter_for(User(), **rules)


def _for_the_last(memory: list[User]) -> Callable[..., Filter]:
    """Keep the first user's filter for everybody after him: a cache without the user in its key."""

    def mutant(user: User, **rules: Any) -> Filter:
        memory.append(user)
        return filter_for(memory[max(0, len(memory) - 2)], **rules)

    return mutant


def _solr(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    real = parameters.filter_params
    return lambda access, schema: change(real(access, schema))


def _not(params: dict[str, Any]) -> dict[str, Any]:
    inner = {f"was_{number}": query for number, query in enumerate(params["fq"])}
    negated = "".join(f" must=$was_{number}" for number in range(len(inner)))
    return {
        **params,
        **inner,
        "is_right": f"{{!bool{negated}}}",
        "fq": ["{!bool must=$all must_not=$is_right}"],
        "all": "*:*",
    }


EVERYWHERE: dict[str, Mutant] = {
    "the filter is everybody's": (pipeline, "filter_for", _for_everybody),
    "the filter is the anonymous user's": (pipeline, "filter_for", _for_nobody),
    "the filter is another user's (a cache without the user)": (pipeline, "filter_for", _for_the_last([])),
}

EMBEDDED: dict[str, Mutant] = {
    "filter removed": (retriever, "rights_query", lambda *all_of_it: None),
    "filter inverted": (retriever, "rights_query", _inverted),
    **{f"level {level} dropped": (queries, "LEVELS", _without(level)) for level in LEVELS},
    "level document dropped for the anonymous": (queries, "ACL_FIELDS", ACL_FIELDS[:4]),
    "deny ignored": (queries, "_level_query", _undenied),
    "open by the allow field alone": (queries, "_level_query", _half_open),
}

SOLR: dict[str, Mutant] = {
    "filter removed": (parameters, "filter_params", _solr(lambda params: {})),
    "filter inverted": (parameters, "filter_params", _solr(_not)),
    **{f"level {level} dropped": (parameters, "LEVELS", _without(level)) for level in LEVELS},
    "deny ignored": (
        parameters,
        "filter_params",
        _solr(lambda params: {**params, **{f"deny_{level}": "-*:*" for level in LEVELS}}),
    ),
    "tokens read by an analyser, not raw": (
        parameters,
        "_sendable",
        lambda tokens: ([part.strip().lower() for token in tokens for part in token.split(",")], []),
    ),
}


def must_fail(running: World, name: str, mutant: Mutant, record: Record) -> None:
    """Run the property with *mutant* in place; it must find the leak or the loss."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*mutant)
        with pytest.raises(AssertionError) as caught:
            run(running, CASES)
    reason = str(caught.value).splitlines()[0]
    # A mutant that only breaks the service would prove nothing.
    assert " told " in reason or " did not find " in reason or " for " in reason, reason
    assert "internal error" not in reason and "500" not in reason, reason
    tell(record, f"MUTANT {running.engine:8} | {name:55} | found: {reason[:90]}")


@pytest.mark.parametrize("name", [*EVERYWHERE, *EMBEDDED])
def test_a_broken_filter_is_noticed_embedded(
    embedded_world: World,  # noqa: F811 - the fixture
    name: str,
    record_property: Record,
) -> None:
    must_fail(embedded_world, name, {**EVERYWHERE, **EMBEDDED}[name], record_property)


@pytest.mark.solr
@pytest.mark.parametrize("name", SOLR)
def test_a_broken_filter_is_noticed_solr(
    solr_world: World,  # noqa: F811 - the fixture
    name: str,
    record_property: Record,
) -> None:
    must_fail(solr_world, name, SOLR[name], record_property)
