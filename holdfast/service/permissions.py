"""Statements that a server which others can reach runs only if its settings say so: it has no authentication."""

from holdfast.config import Settings
from holdfast.errors import NotPermitted
from holdfast.sql.syntax.statements import CreateFunction, Drop, Statement


class Permissions:
    """Checks statements before they run. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._python = settings.is_local if settings.python_functions is None else settings.python_functions
        self._delete = settings.is_local if settings.topic_deletion is None else settings.topic_deletion

    def check(self, statement: Statement) -> None:
        if isinstance(statement, CreateFunction) and not self._python:
            raise NotPermitted(
                "functions in Python are switched off on this server",
                detail="Their code has all rights of the server, and everybody who reaches its port could create one.",
                hint="Start the server with -s python_functions=true to allow them.",
                position=statement.position,
            )
        if isinstance(statement, Drop) and statement.delete_topic and not self._delete:
            raise NotPermitted(
                "DELETE TOPIC is switched off on this server",
                detail="Everybody who reaches its port could delete topics.",
                hint="Leave DELETE TOPIC out, or start the server with -s topic_deletion=true.",
                position=statement.position,
            )
