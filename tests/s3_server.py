"""A server of S3 on this machine: moto's, which keeps its buckets in the memory of this process."""

from __future__ import annotations

import json
import logging
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from moto.server import ThreadedMotoServer


@contextmanager
def running_s3(patch: pytest.MonkeyPatch) -> Iterator[str]:
    """Let the environment lead to a server that has no bucket; give the address of its endpoint."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    for name, value in {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }.items():
        patch.setenv(name, value)
    try:
        forget_all(endpoint)  # what an earlier server of this process was given is still there
        yield endpoint
    finally:
        server.stop()


def make_bucket(endpoint: str, name: str) -> None:
    asked = urllib.request.Request(f"{endpoint}/{name}", method="PUT")
    with urllib.request.urlopen(asked, timeout=10):
        pass


def forget_all(endpoint: str) -> None:
    asked = urllib.request.Request(f"{endpoint}/moto-api/reset", method="POST", data=json.dumps({}).encode())
    with urllib.request.urlopen(asked, timeout=10):
        pass
