"""
Of each format a file made by its own library, with a word in each place: what a reader sees is found or said to be left
out, what nobody sees is not.

A word that begins with "seen" is in such a place, one with "blind" in the other kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from email.message import EmailMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from pathlib import Path

import docx
import pytest
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from docx.shared import RGBColor

from datafari_rag.ingest.parsers import registry
from datafari_rag.ingest.parsers.parsed import Parsed

Written = Callable[[Path], None]


def parse(path: Path, *inside: tuple[int, str]) -> Parsed:
    with path.open("rb") as file:
        return registry.parse(file, path.name, inside)


def word(path: Path) -> None:
    document = docx.Document()
    document.add_heading("seenHeading", 1)
    paragraph = document.add_paragraph("seenBody ")
    hidden = paragraph.add_run("blindVanish ")
    hidden.font.hidden = True
    white = paragraph.add_run("blindWhite ")
    white.font.color.rgb = RGBColor(255, 255, 255)
    style = document.styles.add_style("Secret", WD_STYLE_TYPE.CHARACTER)
    style.font.hidden = True
    paragraph.add_run("blindStyle ", style="Secret")
    document.add_comment(paragraph.runs[:1], text="seenComment", author="Ada")
    document.add_paragraph("seenItem", style="List Bullet")
    document.add_paragraph("seenStep", style="List Number")
    table = document.add_table(2, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "seenColumn", "seenOther"
    table.cell(1, 0).text = "seenCell"
    table.cell(1, 1).add_table(1, 1).cell(0, 0).text = "seenInner"
    document.sections[0].header.paragraphs[0].text = "seenHeader"
    document.sections[0].footer.paragraphs[0].text = "seenFooter"
    runs = {
        "ins w:id='1'": "seenInserted",
        "moveTo w:id='2'": "seenMoved",
        "fldSimple w:instr='DATE'": "seenField",
        "smartTag": "seenTag",
        "hyperlink": "seenLink",
        "del w:id='3'": "blindDeleted",
        "moveFrom w:id='4'": "blindMoved",
    }
    for start, words in runs.items():
        kind = "delText" if start.startswith("del ") else "t"
        end = start.partition(" ")[0]
        xml = f"<w:p {nsdecls('w')}><w:{start}><w:r><w:{kind}>{words}</w:{kind}></w:r></w:{end}></w:p>"
        paragraph._p.addnext(parse_xml(xml))
        paragraph._p.append(parse_xml(xml)[0])
        cell = table.cell(1, 0).paragraphs[0]._p
        cell.append(parse_xml(xml.replace(words, f"{words}InCell"))[0])
    box = (
        f"<w:r {nsdecls('w')} xmlns:v='urn:schemas-microsoft-com:vml'><w:pict><v:shape><v:textbox><w:txbxContent><w:p>"
        "<w:r><w:t>seenBox</w:t></w:r></w:p></w:txbxContent></v:textbox></v:shape></w:pict></w:r>"
    )
    paragraph._p.append(parse_xml(box))
    control = "<w:sdt {}><w:sdtContent><w:p><w:r><w:t>seenControl</w:t></w:r></w:p></w:sdtContent></w:sdt>"
    document.element.body.insert(0, parse_xml(control.format(nsdecls("w"))))
    document.save(str(path))


PAGE = """<html><head><title>seenTitle</title><style>.blindStyle{}</style></head><body><h1>seenHeading</h1>
<!-- blindComment --><script>blindScript</script><template>blindTemplate</template><p hidden>blindHidden</p>
<p style="display:none">blindDisplay</p><span style="color:#fff;background-color:#fff">blindWhite</span>
<p>seenBody <span>seenSpan</span><br>seenLine <img alt="seenAlt" src="x"></p><ul><li>seenItem<ul><li>seenInner</ul></ul>
<dl><dt>seenTerm<dd>seenMeaning</dl><details><summary>seenSummary</summary>seenDetails</details>
<table><caption>seenCaption</caption><tr><th>seenColumn</th><th>seenOther</th></tr><tr><td>seenCell</td><td>
<table><tr><td>seenNested</td></tr></table></td></tr></table><form><label>seenLabel</label><input value="seenValue">
<input type="hidden" value="blindInput"><textarea>seenArea</textarea><select><option>seenOption</select></form>
<pre>seenCode</pre><blockquote>seenQuote</blockquote></body></html>"""


def page(path: Path) -> None:
    path.write_text(PAGE)


def marks(path: Path) -> None:
    text = """---
title: blindFront
---
# seenHeading

seenBody **seenBold** `seenCode` ![seenAlt](x.png)

- seenItem

| seenColumn | b |
|---|---|
| seenCell | 2 |

<details><summary>seenSummary</summary>

seenDetails

</details>

<table><tr><td>seenRaw</td><td>x</td></tr></table>

<p align=center>seenAligned</p>

<!-- blindComment -->

    seenIndented

```
seenFence
```
"""
    path.write_bytes(text.replace("\n", "\r\n").encode())


def mail(path: Path) -> None:
    outer = MIMEMultipart("mixed")
    outer["Subject"], outer["From"], outer["To"] = "seenSubject", "seenSender <a@example.org>", "seenReader@example.org"
    both = MIMEMultipart("alternative")
    both.attach(MIMEText("seenBody in words that say all that there is to say", "plain"))
    both.attach(MIMEText("<p>the same</p>", "html"))
    outer.attach(both)
    picture = MIMEText("x", "plain")
    picture.add_header("Content-Disposition", "inline", filename="plan.pdf")
    outer.attach(picture)
    outer.attach(MIMEText("seenSecond Größe", "plain", "iso-8859-15"))
    outer.attach(MIMEText("<p>seenPage</p><p hidden>blindHidden</p>", "html"))
    path.write_bytes(outer.as_bytes())


def mailbox(path: Path) -> None:
    first, second = EmailMessage(), EmailMessage()
    for message, words in ((first, "seenFirst"), (second, "seenÄnderung")):
        message["Subject"], message["From"], message["To"] = words, "a@example.org", "b@example.org"
        message.set_content(f"{words}\n\nFrom here on it is text.\n", cte="base64" if message is second else None)
    path.write_bytes(
        b"".join(b"From a@example.org Mon Mar  2 09:00:00 2026\n" + m.as_bytes() + b"\n" for m in (first, second))
    )


WRITTEN: dict[str, Written] = {".docx": word, ".html": page, ".md": marks, ".eml": mail, ".mbox": mailbox}


def words_of(path: Path) -> tuple[str, Parsed]:
    """Return the title and text of *path* and of the files in it, and what was made of *path* itself."""
    found = parse(path)
    inner = [parse(path, (n, Path(name).suffix)) for n, name in enumerate(found.members) if name.endswith(".eml")]
    return "\n".join(f"{one.title}\n{one.text}" for one in (found, *inner)), found


@pytest.mark.parametrize("kind", WRITTEN)
def test_what_a_reader_sees_is_read_and_what_nobody_sees_is_not(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a{kind}"
    WRITTEN[kind](path)
    text, _ = words_of(path)
    source = Path(__file__).read_text("utf-8")
    function = source[source.index(f"def {WRITTEN[kind].__name__}(") :].partition("\n\n\n")[0]
    function += PAGE if kind == ".html" else ""
    wanted = set(re.findall(r"seen[A-ZÄ]\w*", function))
    assert len(wanted) > 1
    assert {word for word in wanted if word not in text} == set()
    assert re.findall(r"blind\w+", text) == []


def test_cells_of_word_keep_what_was_inserted_moved_and_counted(tmp_path: Path) -> None:
    word(tmp_path / "a.docx")
    text = parse(tmp_path / "a.docx").text
    row = next(line for line in text.split("\n") if "seenCell" in line)
    assert all(f"{kind}InCell" in row for kind in ("seenInserted", "seenMoved", "seenField"))
    assert "blind" not in row and row.endswith("| seenInner")
    assert "1. seenStep" in text and "- seenItem" in text


def test_what_was_left_out_of_a_file_is_counted_by_kind(tmp_path: Path) -> None:
    word(tmp_path / "a.docx")
    page(tmp_path / "a.html")
    assert parse(tmp_path / "a.docx").left_out["hidden text"] >= 5
    assert parse(tmp_path / "a.html").left_out == {"hidden text": 3}


MERGED = """<table><tr><th rowspan=2>Region<th colspan=2>2024</tr><tr><th>Q1<th>Q2</tr>
<tr><td rowspan=2>North<td>1<td>2</tr><tr><td>3<td></tr><tr><td colspan=3>Total follows</tr></table>"""


def test_merged_cells_are_filled_and_empty_ones_keep_their_column(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(MERGED)
    assert parse(tmp_path / "a.html").text.split("\n") == [
        "Region | 2024 Q1 | 2024 Q2",
        "--- | --- | ---",
        "North | 1 | 2",
        "| North | 3 |  |",
        "| Total follows |  |  |",
    ]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("Artikel;Preis\nWinkel, Edelstahl, 40x40;3,75\nRohr, lang, 2 m;4,20", "Winkel, Edelstahl, 40x40 | 3,75"),
        ("sep=;\na;b\n1,5;2,5", "1,5 | 2,5"),
        ("Route,Vehicle,Fare\nSund,Car,41\n,Truck,96", "|  | Truck | 96 |"),
        ("a\tb\n1,2\t3,4", "1,2 | 3,4"),
    ],
    ids=["decimal commas", "the line of Excel", "an empty first value", "tabs"],
)
def test_the_columns_of_a_csv_say_what_separates_them(tmp_path: Path, text: str, rows: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert rows in parse(tmp_path / "a.csv").text.split("\n")
    assert "sep=" not in parse(tmp_path / "a.csv").text


def test_an_attachment_is_read_in_the_code_that_its_mail_names(tmp_path: Path) -> None:
    message = EmailMessage()
    message["Subject"], message["From"] = "x", "a@example.org"
    message.set_content("text")
    message.add_attachment("Größe 5 €", charset="iso-8859-15", filename="a.txt")
    (tmp_path / "a.eml").write_bytes(message.as_bytes())
    assert parse(tmp_path / "a.eml", (0, ".txt")).text == "Größe 5 €"


@pytest.mark.parametrize("title", ["untitled", "(anonymous)", "Microsoft Word - Plan 3.docx", "Document 1", "a.docx"])
def test_a_title_that_is_none_gives_way_to_the_largest_heading(tmp_path: Path, title: str) -> None:
    document = docx.Document()
    document.core_properties.title = title
    document.add_heading("Second", 2)
    document.add_heading("First", 1)
    document.save(str(tmp_path / "a.docx"))
    assert parse(tmp_path / "a.docx").title == "First"
