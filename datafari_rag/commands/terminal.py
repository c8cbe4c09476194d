"""What every command shares: where its settings are, the ids of documents, and how long work shows its progress."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

FILE = "rag.properties"


def program() -> str:
    """Return how this program is called from the working folder: its name alone where that is on the PATH."""
    called = Path(sys.argv[0])
    if called.suffix == ".py" or not called.exists():
        return f"{shlex.quote(sys.executable)} -m datafari_rag"
    on_path = shutil.which(called.name)
    if on_path and Path(on_path).resolve() == called.resolve():
        return called.name
    return shlex.quote(str(called))


def typed(text: str, conf: Path | None = None) -> str:
    """Return *text* with each command in it, as `datafari-rag index PATH`, as it is typed here, over *conf*."""
    over = "" if conf is None else f" --conf {shlex.quote(str(conf))}"
    return re.sub("`datafari-rag ([^`]+)`", lambda found: f"`{program()} {found[1]}{over}`", text)


def pasteable(examples: str) -> str:
    """Return *examples* with each command at the beginning of a line, or after a pipe, as it is called here."""
    return re.sub(r"(?m)(^  +|\| )datafari-rag ", lambda found: f"{found[1]}{program()} ", examples)


class Command(click.Command):
    """A command that ends with status 1 and a sentence when it fails, and whose examples can be pasted."""

    def get_help(self, ctx: click.Context) -> str:
        """Return the help, the examples with this program's own path."""
        return pasteable(super().get_help(ctx))

    def invoke(self, ctx: click.Context) -> Any:
        """Run it. Raises: ClickException."""
        # Imported here, so that `--help` stays fast.
        from datafari_rag.adapters.settings.file import StartRefused
        from datafari_rag.core.errors import RagError

        try:
            return super().invoke(ctx)
        except StartRefused as refused:
            raise click.ClickException("\n".join(refused.lines)) from refused
        except RagError as error:
            conf = ctx.params.get("conf")
            raise click.ClickException(typed(f"{error.label}: {sentence(error)}", conf)) from error


def sentence(error: RagError) -> str:
    """Return what failed, for a person at a terminal."""
    return f"{error.reason} ({printable(error.log)})" if error.log else error.reason


class SettingsPath(click.ParamType[Path]):
    """A properties file, or a folder: one that holds `rag.properties`, or one that `demo FOLDER` serves."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the properties file; whether one that is named itself is there is said where it is read."""
        path = Path(value)
        if not path.is_dir():
            return path
        file = next((folder / FILE for folder in (path, demo_place(path)) if (folder / FILE).exists()), None)
        if file is None:
            way = f"run `datafari-rag demo {shlex.quote(str(path))}` once, or name a settings file."
            self.fail(typed(f"{path} has no {FILE}: {way}"), param, ctx)
        return file


CONF = click.option(
    "--conf",
    type=SettingsPath(),
    default=f"conf/{FILE}",
    show_default=True,
    help="The settings: a properties file, a folder with a rag.properties, or a folder that `demo FOLDER` serves.",
)


def demo_place(folder: Path | None, *, is_near: bool = False) -> Path:
    """Return where the demo of *folder*, None for the shipped documents, keeps its index and settings."""
    base = Path.home() / ".local/share"
    home = Path(os.environ.get("DATAFARI_RAG_HOME") or Path(os.environ.get("XDG_DATA_HOME") or base) / "datafari-rag")
    if folder is None:
        return home / ("demo-meaning" if is_near else "demo")
    return home / "folders" / hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]


class DocumentId(click.ParamType[str]):
    """The id of a document; of a file that is there, the id under which `index` keeps it."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the id."""
        path = Path(value)
        return path.resolve().as_uri() if path.is_file() else str(value)


if TYPE_CHECKING:
    # The only place where click gives the type of its bar a name.
    from click._termui_impl import ProgressBar

    from datafari_rag.core.errors import RagError

CLEARED = "\r\033[K\033[?25h"
"""Removes a bar from a terminal and shows its cursor again."""


MAX_NAME_CHARS = 40
"""Most of the name of a file that is shown beside the progress."""


class ProblemListener:
    """A listener of `index` and `passages sync` that prints problems on stderr; `show` shows how far the run is."""

    def __init__(self) -> None:
        """Count nothing yet."""
        self.total = self.done = self.count = 0
        self.name = self.part = ""

    def show(self) -> None:
        """Show nothing."""

    def started(self, total: int) -> None:
        """Count from the beginning."""
        self.total, self.done, self.count = total, 0, 0
        self.show()

    def reading(self, path: str) -> None:
        """Keep the name of the file."""
        self.name, self.part = path.rpartition("/")[2], ""
        self.show()

    def within(self, share: float) -> None:
        """Keep how far the file is."""
        self.part = f" ({share:.0%})"
        self.show()

    def advanced(self, size: int, count: int) -> None:
        """Add *size*, a part of the total, and the documents or passages that were written."""
        self.done, self.count, self.part = self.done + size, self.count + count, ""
        self.show()

    def failed(self, where: str, why: str) -> None:
        """Print one line."""
        click.echo(printable(f"{where}: {why}"), err=True)

    @property
    def file(self) -> str:
        """The file that is read, and how far it is, for a person; "" before the first."""
        return f"{printable(self.name)[:MAX_NAME_CHARS]}{self.part}"


class ProgressListener(ProblemListener):
    """A listener that draws the progress of a run, its speed in *noun* per second, and the time left."""

    def __init__(self, label: str, noun: str) -> None:
        """Draw nothing yet."""
        super().__init__()
        self._label, self._noun = label, noun
        self._bar: ProgressBar[int] | None = None

    def started(self, total: int) -> None:
        """Begin a new bar."""
        self._bar = click.progressbar(
            length=total,
            label=self._label,
            item_show_func=self._speed,
            show_eta=False,
            width=20,
            file=sys.stderr,
        )
        super().started(total)

    def show(self) -> None:
        """Draw the bar where it is."""
        if self._bar is None:
            return
        if self.done > self._bar.pos:
            self._bar.update(self.done - self._bar.pos)
        else:
            self._bar.render_progress()

    def failed(self, where: str, why: str) -> None:
        """Print one line in place of the bar, which is drawn again below it at the next step."""
        click.echo(CLEARED, nl=False, err=True)
        super().failed(where, why)

    def _speed(self, _: int | None) -> str:
        if self._bar is None:
            return ""
        elapsed_s = time.time() - self._bar.start
        rate = self.count / elapsed_s if elapsed_s else 0.0
        text = f"{self.count} {self._noun}, {rate:.0f}/s, left {self._bar.format_eta() or '-'}"
        return f"{text}, {self.file}" if self.file else text


LINE_S = 30.0
"""Seconds between two lines of progress where nobody watches a bar; a shorter run prints none."""


class LineListener(ProblemListener):
    """A listener that prints a line about the progress of a run each `LINE_S` seconds, for files and logs."""

    def __init__(self, label: str, noun: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Print nothing yet."""
        super().__init__()
        self._label, self._noun, self._clock = label, noun, clock
        self._began_s = self._printed_s = clock()

    def show(self) -> None:
        """Print a line where the last one is old."""
        now_s = self._clock()
        if now_s - self._printed_s >= LINE_S:
            self._printed_s = now_s
            share = 100 * self.done / self.total if self.total else 0.0
            took_s = now_s - self._began_s
            within = f", {self.file}" if self.part else ""
            click.echo(f"{self._label}: {self.count} {self._noun}, {share:.0f} %, {took_s:.0f} s{within}", err=True)


@contextmanager
def progress(label: str, noun: str) -> Iterator[ProblemListener]:
    """Return a listener that draws on stderr until the end of the block, or prints lines where that is no terminal."""
    if not sys.stderr.isatty():
        yield LineListener(label, noun)
        return
    try:
        yield ProgressListener(label, noun)
    finally:
        click.echo(CLEARED, nl=False, err=True)


def counted(number: int, noun: str) -> str:
    """Return *number* with *noun*, in the plural for any number but one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def printable(text: str) -> str:
    """
    Return *text* with every character escaped that cannot be seen.

    File names may contain line ends, terminal commands, and marks that change the direction of writing.
    """
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
