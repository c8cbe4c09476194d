"""`python -m datafari_rag` is the command line."""

from datafari_rag.commands.main import main

if __name__ == "__main__":
    main()
