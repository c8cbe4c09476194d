"""Sentences, and pieces of several: points that end none, lines, tables, and what has no end at all."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.text.sentences import MAX_CHARS, blocks, bounds_around, spans

SAMPLES = {
    "en": """Dr. Ada Moss arrived at 9 a.m. on Jan. 5.| She paid $3.50 for a coffee, i.e. less than at home.|
“Is it far?” she asked.| No, said Mr. Bell; it is 2.5 miles (see Fig. 3).| Really?!| The U.S. office of Kern & Co. Ltd.
has moved.| J. R. Hale wrote to Prof. Lund et al. in 1998.| They did not answer…| Version 2.1.3 runs on example.org.|

Opening hours|
Monday to Friday|
- bring your card|
- bring a pen|
1. Sign the form|
2. Send it back|
The service that was described in the last chapter of this handbook is offered in
every branch of the bank, even the small ones.| It is free.|""",
    "fr": """M. Dupont et Mme Leroy sont arrivés à 9 h.| Ils ont payé 3,50 € (cf. art. 12 du règlement).|
« Est-ce loin ? » demanda-t-elle.| Non, répondit le Dr Petit.| C'est à 2,5 km env. de la gare.| Quoi ?!|
L'arrêté du 5 janv. 2019 s'applique.| Voir p. 14, fig. 3.| La société J. B. Martin & Cie a déménagé.|

Horaires d'ouverture|
Du lundi au vendredi|
• apportez votre carte|
• apportez un stylo|
Le service décrit au dernier chapitre de ce guide est proposé dans toutes les agences de
la banque.| Il est gratuit.|""",
    "de": """Herr Dr. Kurz kam um 9 Uhr an.| Er zahlte z.B. 3,50 Euro, also ca. die Hälfte.|
„Ist es weit?“ fragte er.| Nein, sagte Fr. Lang.| Es sind 2,5 km bzw. eine halbe Stunde.| Wirklich?|
Siehe Abs. 3 und S. 14.| Die Firma gehört seit 1998 der Familie.| Das gilt nicht!|

Öffnungszeiten|
Montag bis Freitag|
- Ausweis mitbringen|""",
    "es": """El Sr. López y la Sra. Ruiz llegaron a las 9.| Pagaron 3,50 euros (véase pág. 12).|
¿Está lejos?| No, dijo el Dr. Mora.| ¡Qué bien!| Son 2,5 km aprox. desde la estación.| La ley núm. 5 se aplica.|

Horario|
De lunes a viernes|
• traiga su carnet|""",
    "ru": """Д-р Иванов приехал в 9 часов.| Он заплатил 350 руб. за билет.| Далеко ли это?| Нет, ответил он.|
Это 2,5 км от станции.| В 1998 г. они переехали.| Смотри рис. 3 на стр. 14.| Правда?!| Хорошо.|

Часы работы|
С понедельника по пятницу|""",
    "ar": """وصل الطبيب في الساعة التاسعة.| دفع ثلاثة دنانير.| هل هو بعيد؟| لا، قال السائق.| المسافة 2.5 كيلومتر.|
انتقلت الشركة في عام 1998.| حقا؟| نعم.|

ساعات العمل|
من الاثنين إلى الجمعة|""",
    "zh": """莫斯医生九点到达。|她花了三元五角买咖啡。|远吗？|不远，司机说。|路程是2.5公里。|公司1998年搬走了。|
真的吗！|是的。|

营业时间|
周一至周五|""",
}
"""A page in each of seven languages; a bar marks the end of a sentence."""

POINTS = {
    "en": [
        "Open foo.py and run it.| Then edit setup.cfg.| Files such as .pyc and .gitignore stay.",
        "The .NET runtime and Node.js 18.2 are needed.| See README.md.| It helps.",
        "Use e.g. Python 3.11.4 or, i.e., a later one.| The E.U. and the U.S.A. agreed.| Nobody asked.",
        "J. K. Hale met Ada W. Bush.| They talked.| St. Mary lived at 5 Main St. in Boston.| It is old.",
        "It costs approx. $3.5 million vs. 2.1 before.| He thought … and then spoke.| Good.",
        "He said “Stop.”| Then he left.| He said (it was late.)| Then he left.",
        "See Sec. 3.2.1 and Figs. 4 and 5.| They show it.| The dose is 0.5 mg/kg b.i.d. for two days.| It works.",
        "Version v1.2.3-rc.1 is out.| No. 5 is alive.| I said no.| He left.| Jan. 5 to Dec. 31, 2019.| Next.",
        "It is in Schedule D.| The Supplier pays for the goods.| It is part of Annex M.| They are listed in it.",
        "Plan B.| It failed.| He works for Apple Inc.| She does not.| Apple Inc. was sued.| It won.",
        "3.2. Scope\n|The policy applies.| The 1973 war.\n\n|“Peace” began.",
        "E. coli is found by Smith et al. (2010) in the U.S.| In 1998 it was new.",
    ],
    "fr": [
        "La mer est à l'est.| Le vent souffle sur la ville et sur le port.| Il est froid.",
        "Dans ce cas il faut voir la rev.| Le col est dans les nuages.",
        "Ouvrez config.yml puis lancez-le.| L'art. 12 du code s'applique.| Il est clair.",
        "M. J.-P. Martin et Mme A. Roux, p. ex., sont là.| Il coûte 1.234,50 euros env. par an.| C'est cher.",
        "« Non. »| Il partit.| Il dit : « Oui… »| Puis il partit.| Voir pp. 12-14, chap. 3.| Prunes, etc.| Il mange.",
    ],
    "de": [
        "Öffnen Sie datei.txt und z. B. setup.cfg.| Am 3. Oktober 1990 war es so weit.| Es war ein Fest.",
        "Im 19. Jahrhundert lebte er.| Die Fa. Kern u. a. zahlt 3,5 Mio. Euro.| Siehe § 5 Abs. 2 Nr. 3 BGB.| Das gilt.",
        "Er sagte: „Nein.“| Dann ging er.| Prof. Dr. med. A. Meier spricht.| Äpfel, Birnen usw.| Das war es.",
    ],
    "es": [
        "Abra config.ini y p. ej. datos.csv.| Luego siga.| EE. UU. y la U.E. firmaron.| Fue en 1998.",
        "D. Juan y Dña. Ana viven en la Av. Sol.| Véase el art. 5, párr. 2.| El s. XIX fue largo.| «No.»| Se fue.",
    ],
    "ru": [
        "Откройте файл config.ini и main.py.| А. С. Орлов родился в 1799 г. в Москве.| Он писал.",
        "Цена 3,5 млн. руб. в год.| См. п. 3 ст. 5 закона.",
        "Сок и т. д.| Он пил.| Адрес: г. Москва, ул. Мира, д. 5.| Да.",
    ],
    "ar": ["افتح الملف config.ini الآن.| د. أحمد وصل عام 1998.| السعر 3.5 دينار.| قال: «لا.»| ثم ذهب."],
    "zh": ["打开config.ini文件。|价格是3.5元。|他说：“不。”|版本2.1.3发布了。|等等……什么？|（见图3。）|结束。"],
}
"""Points that end no sentence; a bar where one ends."""


@pytest.mark.parametrize("sample", [*SAMPLES.values(), *(one for samples in POINTS.values() for one in samples)])
def test_a_sentence_ends_where_a_reader_ends_it(sample: str) -> None:
    text, wanted = "", []
    for piece in sample.split("|"):
        text += piece
        wanted.append(len(text.rstrip()))
    assert [end for _, end in spans(text)] == sorted(set(wanted) - {0}), [text[slice(*span)] for span in spans(text)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One.Two is a name. 3.14 is not.", ["One.Two is a name.", "3.14 is not."]),
        ("It ended.[12] Then it began.", ["It ended.[12]", "Then it began."]),
        ("It ended.\n\n[81] Then it began.", ["It ended.", "[81] Then it began."]),
        ("He left... and came back.", ["He left... and came back."]),
        ("lower case\ngoes on", ["lower case\ngoes on"]),
        ("It was built. Also,\nPostgres95 ran.", ["It was built.", "Also,\nPostgres95 ran."]),
        ("The default is ten.\nother_age (integer)", ["The default is ten.", "other_age (integer)"]),
        ("It is set in the\n/etc/motd file. Good.", ["It is set in the\n/etc/motd file.", "Good."]),
        ("  \n ", []),
        ("no end", ["no end"]),
    ],
    ids=repr,
)
def test_a_text_becomes_sentences(text: str, sentences: list[str]) -> None:
    assert [text[start:end] for start, end in spans(text)] == sentences


@given(st.text("aB. \n!?。-1(\"'", max_size=300))
def test_sentences_are_in_order_and_lose_nothing_but_white_space(text: str) -> None:
    found = spans(text)
    assert all(start < end for start, end in found)
    assert all(before[1] <= after[0] for before, after in pairwise(found))
    kept = "".join(text[start:end] for start, end in found)
    assert "".join(kept.split()) == "".join(text.split())


@pytest.mark.parametrize("text", ["word " * 1000, "x" * 1500])
def test_text_without_an_end_is_cut_at_a_space_where_there_is_one(text: str) -> None:
    found = spans(text)
    assert all(end - start <= MAX_CHARS for start, end in found)
    assert {word for start, end in found for word in text[start:end].split()} <= {"word", "x" * MAX_CHARS, "x" * 100}


def test_blocks_hold_the_whole_text_and_end_with_sentences() -> None:
    text = "".join(f"This is sentence number {number}, e.g. of a text.\n\n" for number in range(50))
    found = blocks(text, 200)
    ends = [end for _, end in spans(text)]
    assert all(end in ends and 200 <= end + len("\n\n") - start < 260 for start, end in found[:-1])
    assert found[-1][1] == ends[-1]
    assert [piece for start, end in found for piece in text[start:end].split()] == text.split()


@pytest.mark.parametrize("text", ["", " \n ", "x", "x" * 5000, "word " * 1000, "One. Two."])
def test_blocks_of_anything_lose_nothing_but_white_space(text: str) -> None:
    kept = "".join(text[start:end] for start, end in blocks(text, 300))
    assert "".join(kept.split()) == "".join(text.split())
    assert all(end - start <= MAX_CHARS + 300 for start, end in blocks(text, 300))


def test_around_a_place_the_sentences_are_those_of_the_whole_text() -> None:
    text = "".join(f"This is sentence number {number} of a long text.\n" for number in range(2000))
    place = text.index("number 1000 ")
    around = bounds_around(text, place, place + 10)
    assert set(around[1:-1]) <= set(spans(text))
    assert any(start <= place < end for start, end in around)
    assert len(around) < 100


def test_a_row_is_one_sentence_whatever_stands_in_its_cells() -> None:
    text = "Contacts. Call us.\nName | Note\nFirst desk | Open. Call 5. Or write!\nSecond | no\nThat is all. Really."
    assert [text[start:end] for start, end in spans(text)] == [
        "Contacts.",
        "Call us.",
        "Name | Note",
        "First desk | Open. Call 5. Or write!",
        "Second | no",
        "That is all.",
        "Really.",
    ]


def test_blocks_keep_the_header_of_a_table_apart_and_rows_whole() -> None:
    rows = [f"Row {number} | {'x' * 30}" for number in range(5)]
    text = "\n".join(("Before it. Words. " * 3, "Name | Note", *rows, "Behind it."))
    found = [text[start:end] for start, end in blocks(text, 60)]
    assert "Name | Note" in found
    assert "\n".join(rows[:2]) in found
    assert rows[4] in found
    even = "\n".join(("Name | Note", *rows[:4]))
    assert [even[start:end] for start, end in blocks(even, 60)][1:] == ["\n".join(rows[:2]), "\n".join(rows[2:4])]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Table 8.2. Numeric Types", id="the number of a table"),
        pytest.param("Abbildung 3. Zwei Räder", id="of a figure, in German"),
        pytest.param("### 8.8.7. Circles", id="of a marked heading"),
    ],
)
def test_the_number_of_a_caption_stays_with_its_words(text: str) -> None:
    assert spans(text) == [(0, len(text))]


def test_the_first_sentences_are_those_of_the_whole_text() -> None:
    text = "One is here. Two is there.\n\n| a | b |\n|---|---|\n| c | d |\n\nThree is nowhere."
    assert len(spans(text)) == 5
    for number in range(7):
        assert spans(text, most=number) == spans(text)[:number]
