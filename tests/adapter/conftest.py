"""The data source of these tests is a module of this folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
