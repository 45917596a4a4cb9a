import sys
from pathlib import Path

# Charts drawn at random and their plain interpreter stand beside the tests of running them.
sys.path.insert(0, str(Path(__file__).parents[1] / "chart"))
