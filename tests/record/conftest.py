import sys
from pathlib import Path

# The helpers beside the tests, and the charts drawn at random that stand beside those of running.
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "chart")]
