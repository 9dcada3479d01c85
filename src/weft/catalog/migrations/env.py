"""Alembic's entry point: run the migrations on the connection that the catalog hands over."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, transactional_ddl=True)
context.run_migrations()
