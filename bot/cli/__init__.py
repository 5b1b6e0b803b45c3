"""The command line: `omoide`. A contract: scripts of the people who run it rely on every line of it.

Exit codes: 0 done, 1 it could not be done, 2 it was asked for wrongly (arguments, settings), 130 Ctrl-C,
143 SIGTERM or SIGHUP.
What each command needs is imported when it runs, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence

_INTERRUPTED, _TERMINATED = 130, 143

Command = Callable[[argparse.Namespace, Mapping[str, str]], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        code = _command(arguments.command)(arguments, os.environ)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has gone: nothing more to say, also not at the interpreter's end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if code in {_INTERRUPTED, _TERMINATED}:
        # All is in order by now, but a thread may be blocked in a read of the terminal: wait for nothing.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _command(name: str) -> Command:
    """Return what runs a command, importing only what it needs."""
    from bot.cli.running import guarded

    match name:
        case "chat":
            from bot.cli.chat import chat

            return guarded(chat)
        case "run":
            from bot.cli.run import run

            return guarded(run)
        case "doctor":
            from bot.cli.doctor import doctor

            return guarded(doctor)
        case _:
            from bot.cli import archive

            return guarded(getattr(archive, name))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="omoide", description="A companion you talk to, and it remembers you."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    chat = commands.add_parser("chat", help="talk in the terminal; reads lines from a pipe too")
    chat.add_argument("--user", metavar="NAME", help="who is talking (default: the login name)")
    chat.add_argument(
        "--session-timeout", metavar="S", type=_seconds, help="seconds of silence that end a session"
    )

    commands.add_parser("run", help="talk on every platform that has a token")

    memory = _about_a_person(commands, "memory", "show what is remembered")
    memory.add_argument("--json", action="store_true", help="as JSON, for scripts")

    forget = _about_a_person(commands, "forget", "erase everything of a person")
    forget.add_argument("--yes", action="store_true", help="do not ask")

    export = _about_a_person(commands, "export", "write down everything of a person, as JSON")
    export.add_argument("-o", "--output", metavar="FILE", help="where to (default: standard output)")

    take_in = commands.add_parser("import", help="take in what an export wrote")
    take_in.add_argument("file", metavar="FILE", help="an export; - reads standard input")
    take_in.set_defaults(command="take_in")

    doctor = commands.add_parser("doctor", help="check settings, database and model; say how to mend each")
    doctor.add_argument("--quick", action="store_true", help="do not ask the model (it may cost)")
    return parser


def _about_a_person(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, about: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=about)
    command.add_argument("who", metavar="NAME|ID", help="a terminal user, or a memory id (discord:…)")
    return command


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a number of seconds was expected, not {text!r}") from None
    if not 0 < seconds < 366 * 24 * 3600:
        raise argparse.ArgumentTypeError("must be more than 0 and at most a year")
    return seconds
