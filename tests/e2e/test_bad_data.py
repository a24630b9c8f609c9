import time, json
import pytest
from conftest import Trips
pytestmark = pytest.mark.e2e
@pytest.fixture
def trips(tmp_path, run_config):
    t = Trips(tmp_path/"p", run_config); t.fill(); return t
@pytest.mark.parametrize("i",[0,1])
def test_good(trips,i):
    t0=time.time(); r=trips.run(); t1=time.time()
    print(t1-t0, r.status, r.error)
    for n in r.nodes: print(n.id, n.state, n.duration_s, n.started_at)
    print(json.dumps(r.gates, indent=1))
