"""What is said where TensorFlow is not installed."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
sys.modules["tensorflow"] = None
import hilo
try:
    hilo.load(sys.argv[1])
except hilo.Error as e:
    print(e)
"""


def test_a_saved_model(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"")
    done = subprocess.run([sys.executable, "-c", CODE, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "needs TensorFlow" in done.stdout
