from __future__ import annotations

import pytest
from fault_farm import Farm


@pytest.fixture(scope="module")
def farm(spark):
    made = Farm(spark)
    yield made
    made.close()
