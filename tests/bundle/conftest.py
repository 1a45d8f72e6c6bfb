import sys
from pathlib import Path

for folder in ("grade", "attacks"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / folder))
