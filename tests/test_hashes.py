"""Hashes are those of `hashlib`, which is not loaded for small texts."""

from __future__ import annotations

import hashlib
import subprocess
import sys

from hilo import hashes

PROGRAM = """
import sys
from hilo.hashes import LARGE, sha256
found = sha256(b"a")
found.update(b"bc")
assert "hashlib" not in sys.modules
large = sha256(bytes(LARGE))
assert "hashlib" in sys.modules
print(found.hexdigest(), large.hexdigest(), sha256(b"abc").hexdigest())
"""


def test_the_hash_is_that_of_hashlib() -> None:
    assert hashes.sha256().hexdigest() == hashlib.sha256().hexdigest()
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    abc = hashlib.sha256(b"abc").hexdigest()
    assert done.stdout.split() == [abc, hashlib.sha256(bytes(hashes.LARGE)).hexdigest(), abc]
