"""Texts written for the purpose, a bar where a sentence ends: points that end none, in seven languages."""

import pytest

from datafari_rag.core.text.sentences import spans

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


@pytest.mark.parametrize("sample", [one for samples in POINTS.values() for one in samples], ids=repr)
def test_only_the_points_of_sentences_end_them(sample: str) -> None:
    text, wanted = "", []
    for piece in sample.split("|"):
        text += piece
        wanted.append(len(text.rstrip()))
    assert [end for _, end in spans(text)] == wanted, [text[slice(*span)] for span in spans(text)]
