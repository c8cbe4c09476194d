import pytest

from datafari_rag.core.text.language import detect, greeting_in


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
    assert detect(text) == language


UNKNOWN = {
    "tr": "Kaç gün izin hakkım var?",
    "cs": "Kolik dní dovolené mám a kdo schvaluje cestovní výdaje?",
    "hu": "Ki hagyja jóvá az utazási költségeket?",
    "uk": "Який термін розірвання договору і де знаходиться офіс?",
    "fa": "چه کسی هزینه سفر را تایید می‌کند؟",
    "ur": "معاہدہ کب ختم ہوگا؟",
    "sv": "Vem godkänner resekostnader och vad är uppsägningstiden?",
    "da": "Hvor mange feriedage har jeg?",
    "nb": "Hva er oppsigelsestiden?",
    "fi": "Mikä on irtisanomisaika?",
    "is": "Hvað á ég marga frídaga?",
    "et": "Mitu puhkusepäeva mul on?",
    "lv": "Cik atvaļinājuma dienu man ir?",
    "lt": "Kas tvirtina kelionės išlaidas?",
    "sk": "Kto schvaľuje cestovné náklady?",
    "sl": "Koliko dni dopusta imam?",
    "hr": "Tko odobrava putne troškove?",
    "sr": "Колико дана одмора имам?",
    "bg": "Кой одобрява пътните разходи?",
    "ro": "Cine aprobă cheltuielile de călătorie?",
    "vi": "Thời hạn hợp đồng là bao lâu?",
    "id": "Siapa yang menyetujui biaya perjalanan?",
    "eu": "Zenbat opor egun ditut?",
}


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=UNKNOWN)
def test_a_language_without_data_is_not_taken_for_another(text: str) -> None:
    assert detect(text) == ""


@pytest.mark.parametrize("text", ["", "   ", "12345", "?!", "kubectl", "OAuth2 token", "la"], ids=repr)
def test_what_shows_no_language_has_none(text: str) -> None:
    assert detect(text) == ""


def test_one_foreign_name_does_not_make_a_text_foreign() -> None:
    assert detect("The word Москва is written on the map of the city and on the wall.") == "en"


@pytest.mark.parametrize("text", ["Hello", "hi!", "Thank you very much.", " GOOD MORNING ", "Hallo", "谢谢", "شكرا"])
def test_a_greeting_or_thanks_is_no_question(text: str) -> None:
    assert greeting_in(text)


@pytest.mark.parametrize("text", ["", "?", "Hello world program", "thank you letter", "What is a salutation?"])
def test_what_says_more_than_a_greeting_is_a_question(text: str) -> None:
    assert greeting_in(text) is None
