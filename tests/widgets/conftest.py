import sys
from pathlib import Path

# The helpers beside other tests: what an untrusted notebook keeps, and the objects looked at.
HERE = Path(__file__).parents[1]
sys.path[:0] = [str(HERE / "render" / "html"), str(HERE / "browser"), str(HERE / "record")]
