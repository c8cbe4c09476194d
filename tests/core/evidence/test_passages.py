from datafari_rag.core.evidence.passages import MAX_PIECES, pieces_of

TABLE = "Fares\n\n| Line | Fare |\n|---|---|\n| A | 3 |\n| B | 4 |\n\nThe end."


def shown(text: str, least_chars: int = 1) -> list[tuple[str, str]]:
    pieces = pieces_of(text, least_chars)
    leads = [pieces[one.lead] if one.lead >= 0 else None for one in pieces]
    return [
        (text[one.start : one.end], "" if lead is None else text[lead.start : lead.end])
        for one, lead in zip(pieces, leads, strict=True)
    ]


def test_a_row_has_its_header_and_nothing_else_has() -> None:
    rows = [(text, lead) for text, lead in shown(TABLE) if lead]
    assert rows == [("| A | 3 |", "| Line | Fare |"), ("| B | 4 |", "| Line | Fare |")]
    assert [one.is_row for one in pieces_of(TABLE, 1)] == [False, True, True, True, False]


def test_a_table_of_numbers_alone_has_no_header() -> None:
    assert {lead for _, lead in shown("1\t2\n3\t4\n5\t6")} == {""}


def test_items_have_the_line_before_their_list_where_it_introduces_them() -> None:
    text = "You need:\n\n- a ticket.\n- a coat.\n\nIt is windy.\n\n- So they say."
    assert shown(text) == [
        ("You need:", ""),
        ("- a ticket.", "You need:"),
        ("- a coat.", "You need:"),
        ("It is windy.", ""),
        ("- So they say.", ""),
    ]
    assert shown("- a ticket.\n- a coat.") == [("- a ticket.", ""), ("- a coat.", "")]


def test_pieces_are_of_whole_sentences_and_of_a_least_size() -> None:
    text = "The ferry leaves at nine. It is blue. Its captain sleeps. " * 20
    assert all(text[one.end - 1] == "." and one.end - one.start >= 60 for one in pieces_of(text, 60)[:-1])
    assert pieces_of(" \n ", 1) == []


def test_a_text_of_single_letters_is_cut_into_larger_pieces() -> None:
    assert len(pieces_of("a\n\n" * (10 * MAX_PIECES), 1)) <= MAX_PIECES
