import pytest

from datafari_rag.core.passages.term_matching import (
    MAX_HITS,
    MAX_TERMS,
    gains_under,
    is_heading,
    leads_of,
    sentence_scores,
    terms_of,
    traces_of,
    weights_in,
)
from datafari_rag.core.text.sentences import spans


def scores(question: str, text: str, language: str = "en") -> dict[str, float]:
    terms = terms_of(question, language)
    traces = traces_of(terms, text, language)
    bounds = spans(text)
    leads = leads_of(text, bounds)
    found = sentence_scores(bounds, traces, weights_in(terms, traces), text=text, leads=leads)
    return {text[start:end]: score for (start, end), score in zip(bounds, found, strict=True)}


def best(question: str, text: str, language: str = "en") -> str:
    found = scores(question, text, language)
    return max(found, key=lambda sentence: found[sentence])


def found(question: str, text: str, language: str) -> list[str]:
    terms = terms_of(question, language)
    hits = traces_of(terms, text, language).hits
    return [term.stem for term, places in zip(terms, hits, strict=True) if places]


@pytest.mark.parametrize(
    ("question", "text", "language", "terms"),
    [
        ("installing servers", "The server was installed.", "en", ["instal", "serv"]),
        ("cat", "category, concatenate", "en", []),
        ("notes", "It is not here.", "en", []),
        ("l'entretien d'embauche", "Les entretiens", "fr", ["entretien"]),
        ("pg_trgm.limit", "set pg_trgm.limit to 3", "en", ["pg_trgm.limit", "pg", "trgm", "limit"]),
        ("法国首都", "巴黎是法国的首都。", "zh", ["法国", "首都"]),
        ("المدينة", "في المدينة القديمة", "ar", ["المدينة"]),
        ("İstanbul ferry", "the FERRY", "en", ["fer"]),
    ],
    ids=repr,
)
def test_a_text_is_searched_for_the_words_of_a_question(
    question: str, text: str, language: str, terms: list[str]
) -> None:
    assert found(question, text, language) == terms


def test_stop_words_count_only_when_there_is_nothing_else() -> None:
    assert [term.stem for term in terms_of("What is the fare?", "en")] == ["far"]
    assert [term.stem for term in terms_of("How large can a table get?", "en")] == ["larg", "tabl"]
    assert [term.stem for term in terms_of("to be or not", "en")] == ["to", "be", "or", "not"]
    assert terms_of("?!", "en") == ()
    assert len(terms_of(" ".join(f"w{i}x" for i in range(300)), "en")) == MAX_TERMS


def test_names_count_less_than_words_and_a_run_of_names_as_one() -> None:
    weight = {term.stem: term.weight for term in terms_of("Which law governs the Kern Hale Moss Agreement?", "en")}
    assert weight["law"] > 2 * weight["kern"]
    alone = {term.stem: term.weight for term in terms_of("Which law governs Kern?", "en")}
    assert alone["kern"] > 2 * weight["kern"]
    german = {term.stem: term.weight for term in terms_of("welche Strafe droht", "de")}
    assert german["straf"] > 0.9


def test_what_is_frequent_in_the_document_counts_little() -> None:
    text = "The ferry is blue. The ferry is old. The ferry is slow. The fare is nine euros. The ferry is loud."
    assert best("ferry fare", text) == "The fare is nine euros."


def test_evidence_reaches_the_sentences_after_it_more_than_those_before() -> None:
    filler = "Nothing is said of it here. " * 6
    text = (
        f"It is early now. {filler}The harbour opens. {filler}It is late now. " + "No word of that. " * 60 + "The end."
    )
    found = scores("harbour", text)
    assert found["The harbour opens."] > found["It is late now."] > found["It is early now."] > 0
    assert found["The end."] == 0


def test_what_stands_before_a_list_is_as_near_to_each_of_its_items() -> None:
    filler = "No word of that. " * 20
    text = f"{filler}\nThe ferry costs this.\n- adults nine\n- pupils four\n- groups six\nBicycles are one."
    found = scores("ferry", text)
    assert found["- adults nine"] == found["- pupils four"] == found["- groups six"] > found["Bicycles are one."] > 0


def test_a_heading_speaks_for_the_lines_under_it() -> None:
    filler = "Some words that say nothing of what is wanted stand here on a line.\n" * 12
    text = f"vacuum_age (integer)\n{filler}The default is ten.\nother_age (integer)\n{filler}The default is one."
    found = scores("What is the default of vacuum_age?", text)
    assert found["The default is ten."] > found["The default is one."]


@pytest.mark.parametrize(
    ("line", "is_title"),
    [
        ("Opening hours", True),
        ("How do I pay?", True),
        ("It opens at nine.", False),
        ("items:", False),
        ("x" * 99, False),
    ],
    ids=repr,
)
def test_a_short_line_of_its_own_is_a_heading(line: str, is_title: bool) -> None:
    text = f"Before.\n{line}\nAfter."
    assert is_heading(text, 8, 8 + len(line)) is is_title
    assert not is_heading(f"Before {line} after", 7, 7 + len(line))


def test_weights_sum_to_one_or_there_are_none() -> None:
    terms = terms_of("island ferry fare", "en")
    traces = traces_of(terms, "The ferry is blue. " * 50, "en")
    weights = weights_in(terms, traces)
    assert sum(weights) == pytest.approx(1)
    assert weights[1] == min(weights)
    assert weights_in((), traces_of((), "text", "en")) == ()


def test_a_word_on_every_line_is_not_counted_for_ever() -> None:
    hits = traces_of(terms_of("ferry", "en"), "ferry " * (MAX_HITS + 500), "en").hits
    assert len(hits[0]) == MAX_HITS


@pytest.mark.parametrize(
    ("question", "text", "language"),
    [
        pytest.param("Etienne Dolet", "On brûla Étienne Dolet.", "fr", id="a name typed without its accent"),
        pytest.param("Étienne Dolet", "On brula Etienne Dolet.", "fr", id="a name printed without its accent"),
        pytest.param("developpements", "Le développement est lent.", "fr", id="a word with an ending"),
        pytest.param("Dvorak", "A symphony by Dvořák.", "en", id="letters of other languages"),
    ],
)
def test_a_word_that_stands_nowhere_is_looked_for_without_its_accents(question: str, text: str, language: str) -> None:
    hits = traces_of(terms_of(question, language), text, language).hits
    assert all(hits) and all(text[place - 1] == " " for own in hits for place in own)


@pytest.mark.parametrize(
    ("question", "text", "language"),
    [
        pytest.param("pêche", "La pêche et le péché.", "fr", id="spelled exactly as it is typed"),
        pytest.param("cote", "Anecdotes d'Écosse.", "fr", id="inside another word"),
        pytest.param("x-Ray7", "x-råy8", "en", id="an identifier"),
    ],
)
def test_accents_are_told_apart_where_the_word_itself_is_there(question: str, text: str, language: str) -> None:
    hits = traces_of(terms_of(question, language), text, language).hits
    assert sum(map(len, hits)) == text.count(question)


def test_what_stands_under_a_heading_that_is_the_question_gains() -> None:
    text = "Preface\n\nSome words.\n\nHow long is it?\n\nTen days. Then it ends.\n\nOther matters\n\nMore words."
    bounds = spans(text)
    gains = gains_under(text.index("How long"), bounds, text)
    assert [text[slice(*bounds[place])] for place in gains] == ["How long is it?", "Ten days.", "Then it ends."]
    assert gains_under(text.index("How long") - 1, bounds, text) == gains
    assert gains_under(0, [], text) == {}
