import tracemalloc
from itertools import islice, product
from string import ascii_lowercase

import pytest

from datafari_rag.core.text.language import detect, spoken
from datafari_rag.core.text.words import MAX_LANGUAGES


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What is the law of the land?", "en"),
        ("Quelle est la capitale de l'Espagne ?", "fr"),
        ("Wer hat das Gesetz für die Stadt geschrieben?", "de"),
        ("¿Cuál es la capital de Francia?", "es"),
        ("Qual è la capitale della Francia?", "it"),
        ("Qual é a capital da França e onde não está?", "pt"),
        ("Wat is de hoofdstad van het land?", "nl"),
        ("Какая столица у Франции?", "ru"),
        ("ما هي عاصمة فرنسا؟", "ar"),
        ("法国的首都是什么？", "zh"),
        ("フランスの首都はどこですか", "ja"),
        ("프랑스의 수도는 어디입니까", "ko"),
        ("Ποια είναι η πρωτεύουσα;", "el"),
    ],
)
def test_a_question_is_known_by_its_script_or_its_stop_words(text: str, language: str) -> None:
    assert detect(text, "xx") == language


@pytest.mark.parametrize("text", ["", "   ", "12345", "?!", "kubectl"], ids=repr)
def test_what_says_nothing_is_the_default(text: str) -> None:
    assert detect(text, "fr") == "fr"


def test_of_equals_the_default_wins() -> None:
    assert detect("la", "es") == "es"
    assert detect("la", "fr") == "fr"


def test_one_foreign_name_does_not_make_a_text_foreign() -> None:
    assert detect("The word Москва is written on the map of the city and on the wall.") == "en"


def test_however_many_languages_are_named_little_of_them_is_kept() -> None:
    codes = ("".join(letters) for letters in product(ascii_lowercase, repeat=3))
    for code in islice(codes, MAX_LANGUAGES):
        spoken(code, "en")
    tracemalloc.start()
    try:
        for code in islice(codes, 300):
            spoken(code, "en")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # One of them is 70 kB; as many as were kept before have been let go of.
    assert kept < 70_000 * MAX_LANGUAGES * 1.2
