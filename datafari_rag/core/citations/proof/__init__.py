"""Where the text of one document says what an answer claims: its words and sentences, and the search for them."""
