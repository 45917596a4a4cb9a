import sys
from pathlib import Path

# The helpers beside the tests: modules, not tests, shared with those of other folders.
sys.path.insert(0, str(Path(__file__).parent))
