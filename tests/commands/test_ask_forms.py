"""`datafari-rag ask` over an embedded index answers from a word in whatever form it is written there."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from datafari_rag.bootstrap import writer_for
from datafari_rag.commands.main import main
from datafari_rag.core.text.language import detect
from tests.end_to_end.processes import write_settings
from tests.settings import settings_with

PROBES = [
    pytest.param("Das Ge\u00adsamt\u00adkon\u00adzept wurde im Mai freigegeben.", "Gesamtkonzept", id="soft hyphens"),
    pytest.param("The ze\u200bbra was sold in June.", "When was the zebra sold?", id="a blank of no width"),
    pytest.param("部品番号ＰＰＲ－９０８７の在庫は１２個です。", "PPR-9087", id="full width"),
    pytest.param("この仕事の担当はｻﾄｳです。", "サトウ", id="half width"),
    pytest.param("The oﬃce moved to the ﬁfth ﬂoor.", "Which floor did the office move to?", id="ligatures"),
    pytest.param("Die Lindenstraße bleibt bis Juli gesperrt.", "Lindenstrasse", id="two letters for one"),
    pytest.param("Le cafe\u0301 ouvre toujours en hiver.", "Quand ouvre le café ?", id="accents apart"),
    pytest.param("يقع مكتب آسفي في شارع الميناء.", "اسفي", id="another alef"),
    pytest.param("창고는 부산에 있습니다.", "창고", id="a particle"),
    pytest.param("İSTANBUL ofisi bugün kapalı.", "istanbul", id="a capital i with its dot"),
]


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forms")
    index = f"embedded:{folder / 'index'}"
    writer = writer_for(settings_with(solr_url=index))
    texts = [str(probe.values[0]) for probe in PROBES]
    writer.add([{"id": f"d{at}", "exactContent": text, "language": detect(text)} for at, text in enumerate(texts)])
    writer.commit()
    writer.close()
    write_settings(folder, {"solr.url": index, "rag.api.endpoint": "builtin:extractive"})
    return folder / "rag.properties"


@pytest.mark.parametrize(("text", "question"), PROBES)
def test_a_word_in_another_form_is_answered_from(conf: Path, text: str, question: str) -> None:
    done = CliRunner().invoke(main, ["ask", question, "--conf", str(conf)])
    assert done.exit_code == 0, done.stderr
    said = done.stdout.partition("\n\n")[0]
    assert text.replace("\u00ad", "").replace("\u200b", "").rstrip(".。")[-12:] in said
