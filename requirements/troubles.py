"""What went wrong when pip failed, said so that a person can mend it. Pure: pip's output in, message out."""

from __future__ import annotations

import re

SPACE_NEEDED = "1 GB"

_ALONE = {
    "secantusdb": """\
The embedded database is not made for this system ({system}). Use a MongoDB server instead:
    OMOIDE_MONGO__URI=mongodb://127.0.0.1:27017 OPENAI_API_KEY=... make chat""",
    "xllamacpp": """\
The bundled model does not run on this system ({system}). Use a model elsewhere instead:
    OPENAI_API_KEY=... make chat
    OMOIDE_LLM__BASE_URL=http://host:port/v1 OMOIDE_LLM__MODEL=name make chat""",
}

_FULL = """\
The disk is full. The set-up needs about {space} in this folder, and pip's cache some more."""
_UNTRUSTED = """\
The certificate of the package index was not accepted. Behind a proxy that opens TLS, name its certificate:
    PIP_CERT=/path/to/ca.pem make ..."""
_UNWELCOME = """\
The package index, or a proxy on the way, refused: look at the user and password in pip's settings."""
_OFFLINE = """\
The package index cannot be reached. Is there a network? pip's own settings hold: PIP_INDEX_URL names another
index, HTTPS_PROXY a proxy. Then run the same command again; what was fetched is not fetched twice."""
_ALTERED = """\
What was downloaded for {name} is not the file that is locked here: it is damaged, or the package index serves
another one. Try again after "pip cache purge"; if it stays so, do not trust that index."""
_ABSENT = """\
The package index has no {name} that is locked here and fits this system ({system}).
If pip is set to an index of your own ("pip config list"), it may lag behind or not be reached."""
_NOT_OURS = """\
A file could not be written: look at who owns this folder and the .venv in it."""

_DISK = r"No space left on device|\[?Errno 28\]?|not enough space on the disk|Disk quota exceeded"
_HASH = r"DO NOT MATCH THE HASHES"
_CERTIFICATE = r"CERTIFICATE_VERIFY_FAILED|SSLError|SSLCertVerificationError"
_REFUSED = r"\b(401|403|407)\b (Client )?(Error|Unauthorized|Forbidden)|Proxy Authentication Required"
_NETWORK = (
    r"NewConnectionError|NameResolutionError|ConnectTimeoutError|ReadTimeoutError|ProxyError|ProtocolError"
    r"|Failed to establish a new connection|Max retries exceeded|Connection (refused|reset|aborted)"
    r"|Temporary failure in name resolution|Network is unreachable|getaddrinfo failed|IncompleteRead"
)
_MISSING = r"No matching distribution found for ([A-Za-z0-9._-]+)"
_DENIED = r"Permission denied|\[Errno 13\]|Access is denied|Read-only file system"


_KINDS = (
    (_DISK, _FULL.format(space=SPACE_NEEDED)),
    (_CERTIFICATE, _UNTRUSTED),
    (_REFUSED, _UNWELCOME),
    (_NETWORK, _OFFLINE),
)


def explain(output: str, *, system: str) -> str:
    """Return what to tell the person about a failed pip, the mend included."""
    if re.search(_HASH, output):
        found = re.search(r"^\s+([A-Za-z0-9._-]+)==\S+ from ", output, re.M)
        return _ALTERED.format(name=found.group(1) if found else "a package")
    for pattern, message in _KINDS:
        if re.search(pattern, output):
            return message
    missing = re.search(_MISSING, output)
    if missing:
        name = missing.group(1)
        return _ALONE.get(name.lower(), _ABSENT).format(name=name, system=system)
    if re.search(_DENIED, output):
        return _NOT_OURS
    return "pip failed. The end of what it said:\n" + _tail(output)


def _tail(output: str, lines: int = 15) -> str:
    kept = [line for line in output.splitlines() if line.strip()][-lines:]
    return "\n".join(f"    {line}" for line in kept)
