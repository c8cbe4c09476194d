"""Text as the service sees it: cleaning, folding, words, sentences, languages, sizes; nothing of questions."""
