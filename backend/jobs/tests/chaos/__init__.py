"""The repository's root, where `chaos` is, is not on the path of the project's tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[4]))
