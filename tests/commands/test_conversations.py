"""The command that deletes a user's stored conversations."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from click.testing import CliRunner, Result

from datafari_rag.adapters.conversation_file import FILE, ConversationFile
from datafari_rag.commands.main import main
from datafari_rag.core.answer.conversations import ConversationLimits

LIMITS = ConversationLimits(86_400.0, 10**6, 10**7)


def deleted(folder: Path, user: str, *lines: str) -> Result:
    conf = folder / "rag.properties"
    conf.write_text("\n".join(lines))
    return CliRunner().invoke(main, ["conversations", "delete", "--conf", str(conf), "--user", user])


def test_the_conversations_of_one_user_are_deleted_and_no_other(tmp_path: Path) -> None:
    lines = ("chat.store.folder=chats", "security.identity=header")
    said = deleted(tmp_path, "ann", *lines)
    assert (said.output, said.exit_code) == ("0 conversations deleted\n", 0)
    assert not (tmp_path / "chats").exists(), "a folder of another account would keep the service out"
    with closing(ConversationFile(tmp_path / "chats", LIMITS)) as store:
        for name in ("ann", "ann", "bob"):
            store.begin(name)
        said = deleted(tmp_path, "ann", *lines)
        assert (said.output, said.exit_code) == ("2 conversations deleted\n", 0)
        assert (store.conversations("ann"), len(store.conversations("bob"))) == ((), 1)
    assert deleted(tmp_path, "bob", *lines).output == "1 conversation deleted\n"


def test_what_keeps_it_from_deleting_is_said(tmp_path: Path) -> None:
    said = deleted(tmp_path, "ann")
    assert (said.exit_code, "chat.store.folder is empty" in said.output) == (1, True)
    (tmp_path / "chats").mkdir()
    (tmp_path / "chats" / FILE).write_bytes(b"broken " * 1000)
    said = deleted(tmp_path, "ann", "chat.store.folder=chats")
    assert (said.exit_code, "SQLITE_NOTADB" in said.output) == (1, True)
    assert deleted(tmp_path, "ann", "solr.url=nonsense").exit_code == 1


def test_only_the_settings_that_it_needs_have_to_be_usable(tmp_path: Path) -> None:
    lines = ("chat.store.folder=chats", "solr.url=nonsense", "rag.maxFiles=many")
    assert deleted(tmp_path, "ann", *lines).output == "0 conversations deleted\n"
    said = deleted(tmp_path, "ann", *lines, "chat.store.folder=a\tb")
    assert (said.exit_code, "Write a backslash twice" in said.output) == (1, True)
