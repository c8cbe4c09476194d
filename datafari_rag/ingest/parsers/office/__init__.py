"""Office files: sheets, slides, OpenDocument texts, RTF."""
