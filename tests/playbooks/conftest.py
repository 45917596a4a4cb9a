"""What tests of playbooks share stands beside them."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]
