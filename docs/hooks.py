"""Adds the pages that are made from the code to the site."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from mkdocs.structure.files import File, Files
from reference import PAGES, page


def on_files(files: Files, config: Any) -> Files:
    for name in PAGES:
        files.append(File.generated(config, name, content=page(name)))
    return files
