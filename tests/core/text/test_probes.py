"""Forty-six languages: a word in another form of its letters is found, a sentence ends where a speaker ends it."""

from __future__ import annotations

import pytest

from datafari_rag.core.text.sentences import spans, statements
from datafari_rag.core.text.tokens import tokens

# The language, a text with a bar where a sentence ends, and words that are to be found in it.
PROBES = {
    "English": ("The ﬁrst oﬃce is in Schedule D.| The Supplier pays.", "first OFFICE"),
    "French": ("L’œuvre est à l'est.| Le vent souffle sur la ville.", "OEUVRE L'EST"),
    "German": ("Der Wert\u00adpapier\u00adindex gilt z. B. hier.| Die STRASSE ist gesperrt.", "Wertpapierindex Straße"),
    "Spanish": ("El Sr. Núñez llegó a las 8.| ¿Quién avisó?| Nadie.", "nunez LLEGÓ"),
    "Italian": ("L’università è chiusa.| Il sig. Bo lo sa.", "UNIVERSITA L'università"),
    "Portuguese": ("A inscrição é grátis.| A Sra. Reis paga 5 euros.", "INSCRICAO grátis"),
    "Catalan": ("El col·legi és obert.| La porta és vella.", "coŀlegi COL·LEGI"),
    "Dutch": ("De prijs is bijv. 5 euro.| Het café is dicht.", "CAFE prijs"),
    "Swedish": ("Åsa bor i Malmö, se t.ex. sid. 5.| Hon är lärare.", "A\u030asa MALMÖ"),
    "Danish": ("Ærø er en ø.| Den er smuk.", "ærø Ø"),
    "Finnish": ("Hän asuu Jyväskylässä.| Päivä on pitkä.", "JYVÄSKYLÄSSÄ pa\u0308iva\u0308"),
    "Polish": ("Łódź leży w Polsce.| Miasto jest duże.", "LODZ duże"),
    "Czech": ("Žádost je např. nová.| Příloha na str. 5 chybí.", "ZADOST příloha"),
    "Hungarian": ("Az idő lejárt.| Új kérés kell.", "IDO kérés"),
    "Romanian": ("Cererea este nouă.| Ședința începe la 9.", "SEDINTA Şedinţa"),
    "Turkish": ("İSTANBUL (bkz. 5) büyük bir şehir.| Isparta küçük.", "istanbul ısparta"),
    "Vietnamese": ("Thời hạn là 5 năm.| Hợp đồng đã ký.", "THỜI HẠN"),
    "Greek": ("Η ΑΘΗΝΑ, π.χ. σελ. 5, είναι μεγάλη.| Ο δρόμος κλείνει.", "Αθήνα ΔΡΟΜΟΣ"),
    "Russian": ("Ёлка стоит 5 тыс. руб. в год.| За\u0301мок закрыт.", "елка замок"),
    "Ukrainian": ("П’ять осіб прийшли.| Під'їзд зачинено.", "П'ЯТЬ під’їзд"),
    "Hebrew": ("שָׁלוֹם לכולם.| צה״ל הודיע.", 'שלום צה"ל'),
    "Arabic": ("مكتب آسفي مفتوح.| المدير هو أحمد.", "اسفي احمد الـمدير"),
    "Persian": ("او می\u200cرود.| كتابی تازه است.", "میرود کتابی"),
    "Urdu": ("یہ کتاب ہے۔| وہ گھر ہے۔", "كتاب"),
    "Hindi": ("यह ज़मीन है।| वह घर है।", "ज\u093cमीन जमीन"),
    "Bengali": ("এটা বাড়ি।| ওটা গাছ।", "বাড\u09bcি গাছ"),
    "Tamil": ("இது வீடு.| அது மரம்.", "வீடு"),
    "Bulgarian": ("Цената е 5 лв. за брой.| Срокът е 3 г. от днес.", "ЦЕНАТА срокът"),
    "Serbian": ("Рок је нпр. 5 дана.| Уговор важи.", "РОК уговор"),
    "Croatian": ("Ugovor vrijedi npr. 5 godina.| Čast mu je.", "CAST UGOVOR"),
    "Slovak": ("Zmluva platí napr. 5 rokov.| Ďalšia časť chýba.", "DALSIA časť"),
    "Lithuanian": ("Sutartis galioja pvz. 5 dienas.| Žyma pridėta.", "ZYMA SUTARTIS"),
    "Estonian": ("Leping kehtib nt. 5 aastat.| Üür on 300 eurot.", "ÜÜR leping"),
    "Norwegian": ("Fristen er f.eks. 5 dager.| Kontoret er stengt.", "FRISTEN kontoret"),
    "Indonesian": ("Cuti berlaku di Jl. 5 Mei.| Kantor tutup.", "KANTOR cuti"),
    "Georgian": ("ვადა არის 5 დღე.| ოფისი დახურულია.", "ᲕᲐᲓᲐ ოფისი"),
    "Armenian": ("Ժամկետը 5 օր է։| Գրասենյակը փակ է։", "ԺԱՄԿԵՏԸ գրասենյակը"),
    "Marathi": ("हे घर आहे।| ते झाड आहे.", "घर झाड"),
    "Malayalam": ("ഇത് വീടാണ്.| അത് മരമാണ്.", "വീടാണ്"),
    "Amharic": ("ይህ ቤት ነው።| ያ ዛፍ ነው።", "ቤት ዛፍ"),
    "Burmese": ("ဒါက အိမ်ပါ။| ဟိုဟာ သစ်ပင်ပါ။", "အိမ်"),
    "Khmer": ("នេះជាផ្ទះ។| នោះជាដើមឈើ។", "ផ្ទះ"),
    "Thai": ("พนักงานลาได้ 5 วัน", "พนักงาน"),
    "Chinese": ("创库管理系统很大。|价格是３.５元。", "管理 系统 3.5"),
    "Japanese": ("部品番号ＰＰＲ－９０８７の在庫。|担当はｻﾄｳです。", "PPR-9087 サトウ 在庫"),
    "Korean": ("창고는 큽니다.| 가격은 5원입니다.", "창고 가격"),
}


@pytest.mark.parametrize(("sample", "asked"), PROBES.values(), ids=PROBES)
def test_a_word_in_another_form_of_letters_is_found(sample: str, asked: str) -> None:
    stored = {token.stem for token in tokens(sample.replace("|", ""))}
    assert {token.stem for token in tokens(asked)} <= stored


@pytest.mark.parametrize("sample", [sample for sample, _ in PROBES.values()], ids=PROBES)
def test_a_sentence_ends_where_a_speaker_ends_it(sample: str) -> None:
    text, ends = "", []
    for piece in sample.split("|"):
        text += piece
        ends.append(len(text))
    assert [end for _, end in spans(text)] == [one.end for one in statements(text)] == ends
