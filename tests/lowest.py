"""Print pip constraints that hold every dependency of the package at the oldest version it says it works with."""

from __future__ import annotations

import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"].values()
for requirement in [*project["dependencies"], *(each for extra in extras for each in extra)]:
    name, _, version = requirement.partition(">=")
    if not version or "," in version:
        raise SystemExit(f"{requirement}: expected a name and its oldest version, as in name>=1.0")
    print(f"{name}=={version}")
# Airflow 2.11.0 lets in what its ObjectStoragePath does not work with; its own constraints name an older one.
print("universal-pathlib<0.3")
