"""Filters of pages and programs: what each form means, and that none is more than values."""

from __future__ import annotations

import pytest

from datafari_rag.core.ask import Restriction
from datafari_rag.core.query.filter_queries import misread_field, restriction_of

FACETS = ("source", "extension", "last_modified")

RESTRICTIONS = {
    "a word": ("source:hr", Restriction("source", value="hr")),
    "any value": ("-source:*", Restriction("source", is_excluded=True)),
    "a quoted star is a star": ('source:"a*"', Restriction("source", value="a*")),
    "an escaped star is a star": (r"source:\*", Restriction("source", value="*")),
    "a colon in a value": ("source:a:b", Restriction("source", value="a:b")),
    "quotation marks go": ('source:"Human Resources"', Restriction("source", value="Human Resources")),
    "an escaped mark stays": (r'source:"say \"a\\b\""', Restriction("source", value='say "a\\b"')),
    "an escaped space": (r"source:Human\ Resources", Restriction("source", value="Human Resources")),
    "an escaped space at the end": (" source:Human\\  ", Restriction("source", value="Human ")),
    "an escaped backslash before spaces": ("source:a\\\\  ", Restriction("source", value="a\\")),
    "spaces around": (' source:"a"\t', Restriction("source", value="a")),
    "local parameters as a quoted value are text": ('source:"{!x}"', Restriction("source", value="{!x}")),
    "a range": ("last_modified:[2024 TO 2025]", Restriction("last_modified", low="2024", high="2025")),
    "a range without an upper end": ("last_modified:[NOW-1DAY TO *]", Restriction("last_modified", low="NOW-1DAY")),
    "a range of everything": ("last_modified:[* TO *]", Restriction("last_modified")),
    "a quoted range": ('last_modified:["a b" TO "c"]', Restriction("last_modified", low="a b", high="c")),
    "date math": ("last_modified:[NOW/DAY-7DAY TO NOW]", Restriction("last_modified", low="NOW/DAY-7DAY", high="NOW")),
    "a tag": ("{!tag=source}source:hr", Restriction("source", value="hr")),
    "a quoted tag": ("{!tag='date_0'}last_modified:[a TO *]", Restriction("last_modified", low="a")),
    "an exclusion": ("-source:hr", Restriction("source", value="hr", is_excluded=True)),
    "an exclusion by a word": ("NOT source:hr", Restriction("source", value="hr", is_excluded=True)),
    "an inclusion": ("+source:hr", Restriction("source", value="hr")),
    "in parentheses": ("(source:hr)", Restriction("source", value="hr")),
    "one of several values": (
        'source:("a b" OR c)',
        Restriction("source", value="a b", alternatives=(Restriction("source", value="c"),)),
    ),
    "one of several, none of them": (
        "{!tag=x}-(source:a OR source:b)",
        Restriction("source", value="a", is_excluded=True, alternatives=(Restriction("source", value="b"),)),
    ),
    "one of several ranges": (
        "{!tag=x}(last_modified:[a TO b] OR last_modified:[* TO c])",
        Restriction("last_modified", low="a", high="b", alternatives=(Restriction("last_modified", high="c"),)),
    ),
    "several lists": (
        "source:(a OR b) OR source:c",
        Restriction("source", value="a", alternatives=tuple(Restriction("source", value=one) for one in "bc")),
    ),
}


@pytest.mark.parametrize(("text", "wanted"), RESTRICTIONS.values(), ids=RESTRICTIONS.keys())
def test_an_fq_becomes_a_raw_restriction(text: str, wanted: Restriction) -> None:
    assert restriction_of(text, FACETS) == wanted


def test_a_filter_on_another_field_is_none_of_ours_and_one_on_ours_that_cannot_be_read_is_known() -> None:
    assert restriction_of("title:source", FACETS) is None
    assert misread_field("title:source", FACETS) is None
    assert misread_field("title:a AND source", FACETS) == "source"
    assert misread_field("title:a AND resource:b", FACETS) is None


@pytest.mark.parametrize(
    "text",
    [
        *("source:a*", "source:?a", "source:a~2", "source:a^5", "source:/a.b/", "source:a!b", "source:-a", "source:+a"),
        *("source:!a", "source:(a OR -b)", "source:(a AND b)", "source:(a b)", "source:(a OR (b))", "((source:a))"),
        *("source:", "source: a", "source:()", "source:(a OR )", 'source:"a', 'source:a"', 'source:"a"b', "source:a\\"),
        *("source:[a TO b}", "source:{a TO b]", "source:[a TO", "source:[a b TO c]", "source:[a]", "source:[TO]"),
        *("source:a AND extension:b", "source:a extension:b", "source:a OR extension:b", "--source:a", "-(-source:a)"),
        *(
            "{!lucene}source:a",
            "{!term f=source}a",
            "{!tag=a}{!tag=b}source:a",
            "{!tag=a v=$q}source:a",
            "{!tag=}source:a",
        ),
        *("source:a\x00", "source:${a}", f"source:{'a' * 10_001}", f"{'(' * 5000}source:a{')' * 5000}", "not source:a"),
    ],
)
def test_what_means_more_to_solr_than_a_value_is_not_read_as_one(text: str) -> None:
    """Read as a value it finds nothing, and excludes nothing."""
    assert restriction_of(text, FACETS) is None
    assert misread_field(text, FACETS) is not None


def test_a_filter_has_a_bounded_length() -> None:
    longest = "a" * (10_000 - len("source:"))
    assert restriction_of(f"source:{longest}", FACETS) == Restriction("source", value=longest)
    assert restriction_of(f"source:{longest}a", FACETS) is None


def test_a_filter_has_a_bounded_number_of_values() -> None:
    most, more = (f"source:({' OR '.join(map(str, range(count)))})" for count in (100, 101))
    found = restriction_of(most, FACETS)
    assert found is not None and len(found.alternatives) == 99
    assert restriction_of(more, FACETS) is None
    assert misread_field(more, FACETS) == "source"
