"""Files that hold files: ZIP, mails with attachments, and books, which are ZIP files of pages."""
