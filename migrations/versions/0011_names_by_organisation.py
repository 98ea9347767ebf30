# SPDX-License-Identifier: Apache-2.0
"""Make survey names unique per organisation, by appending the organisation's name to them (except for `main`).

Servers of the previous release can keep running: they show the longer names, and accept reports by survey id.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_SHORT = "the admin's slug, unique on this server"
_LONG = "the admin's slug, with @ and the organisation unless that is main; unique on this server"
# Names at this revision: later renames in the code must not change this migration.
_OTHERS = (
    "SELECT organisation FROM survey_standings WHERE survey = surveys.id AND organisation <> 'main'"
)


def upgrade() -> None:
    with op.batch_alter_table("surveys") as table:
        table.alter_column(
            "name", type_=sa.String(129), existing_type=sa.String(64), existing_nullable=False,
            comment=_LONG, existing_comment=_SHORT,
        )  # fmt: skip
    op.execute(f"UPDATE surveys SET name = name || '@' || ({_OTHERS}) WHERE EXISTS ({_OTHERS})")  # noqa: S608


def downgrade() -> None:
    """Replace the appended organisation with the first 8 hex digits of the survey's id, so that names stay unique."""
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    part = "substr(encode(id, 'hex'), 1, 8)" if on_postgresql else "lower(substr(hex(id), 1, 8))"
    at = "strpos(name, '@')" if on_postgresql else "instr(name, '@')"
    op.execute(
        f"UPDATE surveys SET name = substr(name, 1, least(55, {at} - 1)) || '-' || {part} WHERE {at} > 0"  # noqa: S608
        if on_postgresql
        else f"UPDATE surveys SET name = substr(name, 1, min(55, {at} - 1)) || '-' || {part} WHERE {at} > 0"  # noqa: S608
    )
    with op.batch_alter_table("surveys") as table:
        table.alter_column(
            "name", type_=sa.String(64), existing_type=sa.String(129), existing_nullable=False,
            comment=_SHORT, existing_comment=_LONG,
        )  # fmt: skip
