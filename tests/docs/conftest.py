"""Documentation runs in an empty folder, on the tests' Spark session."""

from __future__ import annotations

import pytest


@pytest.fixture
def here(tmp_path, monkeypatch, spark):
    import weft
    from weft.delivery import api

    def connect(path="warehouse", *, spark=spark, **rest):
        return api.connect(path, spark=spark, **rest)

    monkeypatch.setattr(weft, "connect", connect, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path
