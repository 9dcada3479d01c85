"""One Spark session for the whole test run, and a fresh warehouse for each test that asks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# a busy machine is no failure: nothing here asserts a time
settings.register_profile("weft", deadline=None)
settings.load_profile("weft")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory):
    from weft.spark.session import start_session

    session = start_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture
def db(tmp_path: Path, spark):
    import weft

    with weft.connect(tmp_path, spark=spark) as database:
        yield database
