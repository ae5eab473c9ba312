"""Module text.

class NotThis:
"""
import os


# The main class.
@decorator
class Invoice(Base):
    """def not_this():"""

    def __init__(self, name: str) -> None:
        self.name = name

    async def print_all(
        self,
    ):
        if x(1):
            pass

        def inner():
            return 1


def main():
    pass
