"""The statements of docs/how-to/database-user.md, and the user that they make."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sqlalchemy import text

from tests.typo3.servers import CHOSEN

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/how-to/database-user.md").read_text()
TYPO3 = json.loads((ROOT / "tests/cases/typo3_13.4.18.json").read_text())
USER = "nrllm_airflow"


def documented_grants(name):
    """Return the statements that the page gives for an engine."""
    return statements_of({"mariadb": "MySQL" if "mysql" in CHOSEN else "MariaDB", "postgres": "PostgreSQL"}[name])


def statements_of(section):
    """Return the statements below a heading of the page."""
    block = re.search(rf"## {section}\n.*?```sql\n(.*?)```", PAGE, re.DOTALL)[1]
    return [statement.strip() for statement in block.split(";") if statement.strip()]


def run_as_admin(site, *statements):
    with site.engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
