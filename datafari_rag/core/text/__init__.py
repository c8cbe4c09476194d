"""Text as the service sees it: what is visible, words, sentences, tables, languages, sizes; nothing of questions."""
