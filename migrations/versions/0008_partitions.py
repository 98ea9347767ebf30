# SPDX-License-Identifier: Apache-2.0
"""Partition `reports` by survey on PostgreSQL; the existing table becomes the default partition.

The upgrade copies no rows, so its duration does not depend on the number of reports. The downgrade copies the reports
of surveys that have a partition of their own back into the single table.
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# Names at this revision: later renames in the code must not change this migration.
_SCHEMA = "frankly_reports"
_DEFAULT = f"{_SCHEMA}.reports_default"


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    _run(
        f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}",
        "ALTER TABLE reports RENAME TO reports_default",
        "ALTER TABLE reports_default RENAME CONSTRAINT pk_reports TO pk_reports_default",
        "CREATE TABLE reports (LIKE reports_default INCLUDING DEFAULTS INCLUDING COMMENTS) PARTITION BY LIST (survey)",
        "ALTER TABLE reports ADD CONSTRAINT pk_reports PRIMARY KEY (survey, id)",
        f"ALTER TABLE reports_default SET SCHEMA {_SCHEMA}",
        f"ALTER TABLE reports ATTACH PARTITION {_DEFAULT} DEFAULT",
    )


def downgrade() -> None:
    bind = op.get_bind()
    if bind.dialect.name != "postgresql":
        return
    names = bind.exec_driver_sql(
        f"SELECT tablename FROM pg_tables WHERE schemaname = '{_SCHEMA}' AND tablename <> 'reports_default'"  # noqa: S608
    ).scalars()
    own = [f"{_SCHEMA}.{name}" for name in names]
    home = bind.exec_driver_sql("SELECT current_schema()").scalar_one()
    _run(f"ALTER TABLE reports DETACH PARTITION {_DEFAULT}")
    for table in own:
        _run(f"INSERT INTO {_DEFAULT} SELECT * FROM {table}")  # noqa: S608 - our own names
    _run(
        "DROP TABLE reports",
        f"ALTER TABLE {_DEFAULT} SET SCHEMA {home}",
        "ALTER TABLE reports_default RENAME TO reports",
        "ALTER TABLE reports RENAME CONSTRAINT pk_reports_default TO pk_reports",
        f"DROP SCHEMA {_SCHEMA}",
    )


def _run(*statements: str) -> None:
    for statement in statements:
        op.execute(statement)
