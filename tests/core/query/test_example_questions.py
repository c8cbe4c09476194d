"""Questions to try are made of a folder's own headings and questions."""

from __future__ import annotations

import pytest

from datafari_rag.core.query.proposals import ExampleTopic, topics_of

POLICY = "# Travel policy\n\n## Hotels\n\nUp to 180 EUR.\n\n## Trains\n\nSecond class.\n"
FAQ = "Q: How do I get a badge?\n\nAsk the desk.\n\n- What does it cost?\n\nNothing.\n"


@pytest.mark.parametrize(
    ("documents", "topics"),
    [
        pytest.param([], [], id="no documents"),
        pytest.param(
            [("Travel policy", POLICY)],
            [ExampleTopic("Travel policy", "Hotels"), ExampleTopic("Travel policy", "Trains")],
            id="sections, but not the title again",
        ),
        pytest.param(
            [("Badges", FAQ)],
            [
                ExampleTopic("Badges", question="How do I get a badge?"),
                ExampleTopic("Badges", question="What does it cost?"),
            ],
            id="complete questions",
        ),
        pytest.param([("Annual leave", "Thirty days.")], [ExampleTopic("Annual leave")], id="a title alone"),
        pytest.param([("<img src=x>", "## <b>Bold</b>\n")], [], id="no markup"),
        pytest.param([("<b>", "## Hotels\n\ntext")], [], id="no section of a title with markup"),
        pytest.param(
            [("Travel policy", POLICY), ("Leave", "Days."), ("Badges", FAQ)],
            [
                ExampleTopic("Travel policy", "Hotels"),
                ExampleTopic("Leave"),
                ExampleTopic("Badges", question="How do I get a badge?"),
            ],
            id="one of each document first",
        ),
    ],
)
def test_what_could_be_asked(documents: list[tuple[str, str]], topics: list[ExampleTopic]) -> None:
    assert list(topics_of(documents)) == topics
