"""A server that tests can bend: it answers a line with its pid, or does what a broken server does.

Run by path as a program of its own, so it needs nothing of the project.
"""

import argparse
import os
import signal
import socketserver
import sys
import time


class Answer(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while self.rfile.readline():
            self.wfile.write(f"{os.getpid()}\n".encode())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--starts", help="a file that gets one line per start")
    parser.add_argument("--manner", choices=["well", "fails", "silent", "stubborn"], default="well")
    given = parser.parse_args()
    if given.starts:
        with open(given.starts, "a") as starts:
            starts.write(f"{os.getpid()}\n")
    if given.manner == "fails":
        sys.exit("the flux is out of balance")
    if given.manner == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if given.manner == "silent":
        time.sleep(600)
    with Server(("127.0.0.1", given.port), Answer) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
