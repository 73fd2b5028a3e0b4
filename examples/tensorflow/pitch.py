"""A published SavedModel names the notes of a chord: `python examples/tensorflow/pitch.py C4 E4 G4`.

The model is basic-pitch's (`pip install --no-deps basic-pitch`): its inputs are windows of two seconds at 22,050 Hz,
its outputs, for each of 172 frames and 88 keys of a piano, how much a note is sounding. However long the sound is, its
windows are one batch, and one compilation serves all batches.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np

import hilo.tensorflow

RATE = 22050  # samples of a second
WINDOW = 43844  # samples of a window
LOWEST = 21  # the MIDI number of a piano's first key
KEYS = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")


def model_folder() -> Path:
    """Where the model is installed."""
    package = importlib.util.find_spec("basic_pitch")
    if package is None or not package.submodule_search_locations:
        sys.exit("this needs the model: pip install --no-deps basic-pitch")
    return Path(package.submodule_search_locations[0]) / "saved_models" / "icassp_2022" / "nmp"


def number(name: str) -> int:
    """The MIDI number of a key such as C4 (60) or F#3."""
    return 12 * (int(name.lstrip("ABCDEFG#")) + 1) + KEYS.index(name.rstrip("0123456789"))


def name(midi: int) -> str:
    """The key of a MIDI number."""
    return f"{KEYS[midi % 12]}{midi // 12 - 1}"


def chord(notes: list[int], seconds: float, harmonics: int = 6) -> np.ndarray:
    """Tones that die away, each with harmonics, as f32[samples]."""
    t = np.arange(int(seconds * RATE)) / RATE
    pitches = [440.0 * 2 ** ((n - 69) / 12) for n in notes]
    waves = [np.sin(2 * np.pi * f * h * t) / h**1.5 for f in pitches for h in range(1, harmonics + 1)]
    sound = sum(waves) * np.exp(-0.7 * t)
    return (0.5 * sound / np.abs(sound).max()).astype(np.float32)


def windows(sound: np.ndarray) -> np.ndarray:
    """The sound in windows that do not overlap, as f32[windows, WINDOW, 1], with silence at its end."""
    count = max(1, -(-len(sound) // WINDOW))
    return np.pad(sound, (0, count * WINDOW - len(sound))).reshape(count, WINDOW, 1)


def sounding(note: np.ndarray, threshold: float = 0.5, frames: int = 20) -> list[int]:
    """The MIDI numbers of keys that sound in enough frames of `note`, f32[windows, 172, 88]."""
    count = (note.reshape(-1, note.shape[-1]) > threshold).sum(0)
    return [int(k) + LOWEST for k in np.flatnonzero(count >= frames)]


def main(names: list[str]) -> None:
    model = hilo.tensorflow.load(model_folder())
    print(model.default())
    for seconds in (2, 7):
        x = windows(chord([number(n) for n in names], seconds))
        found = sounding(model(input_2=x)["note"])
        print(f"{seconds} seconds, {len(x)} windows: {' '.join(map(name, found))}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["C4", "E4", "G4"])
