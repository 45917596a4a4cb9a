import sys
from pathlib import Path

# The helpers beside the tests: modules, not tests, shared with the script that takes pictures.
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "browser")]
