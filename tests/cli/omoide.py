"""Runs the real command line as a person or a script does: a process of its own, with its own settings."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATIENCE = 90  # seconds; a loaded machine takes long to start a database


@dataclass(frozen=True)
class Result:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Omoide:
    """The command line, with a data folder and a model of the test's own."""

    data_dir: Path
    base_url: str = ""
    env: dict[str, str] = field(default_factory=dict)

    async def start(
        self, *arguments: str, stdin: int = asyncio.subprocess.PIPE
    ) -> asyncio.subprocess.Process:
        """Start a command and leave it running; `stdin` may be a terminal's descriptor."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("OMOIDE_", "OPENAI_"))}
        env = {**kept, "OMOIDE_DATA_DIR": str(self.data_dir), "LANG": "en_US.UTF-8", **self.env}
        env.pop("LC_ALL", None)
        if self.base_url:
            env["OMOIDE_LLM__BASE_URL"] = self.base_url
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bot",
            *arguments,
            env=env,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def __call__(self, *arguments: str, said: str = "") -> Result:
        """Run a command to its end."""
        process = await self.start(*arguments)
        out, err = await asyncio.wait_for(process.communicate(said.encode()), PATIENCE)
        assert process.returncode is not None
        return Result(process.returncode, out.decode(), err.decode())


async def say(chat: asyncio.subprocess.Process, line: str) -> str:
    """Say a line to a running chat; returns the line it answers with."""
    assert chat.stdin is not None
    assert chat.stdout is not None
    chat.stdin.write(f"{line}\n".encode())
    await chat.stdin.drain()
    answer = await asyncio.wait_for(chat.stdout.readline(), PATIENCE)
    return answer.decode().rstrip("\n")


async def leave(chat: asyncio.subprocess.Process) -> int:
    """End a running chat by the end of its input; returns its exit code."""
    assert chat.stdin is not None
    chat.stdin.close()
    return await asyncio.wait_for(chat.wait(), PATIENCE)
