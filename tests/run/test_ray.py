"""Runs on a Ray cluster of two machines, both this one: the same bytes, whatever is killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cads_env.errors import AgentError, RunError
from cads_env.proposer import Nothing, ProposerFailed, View
from cads_env.run import RunResult, evaluate
from cads_env.run.executors import Executor, execute, in_order, on_ray
from cads_env.testing import tiny_protocol, tiny_registry
from tests.run.asking import ATTEMPTS, Asks, answer_to, recorded, rows_of

pytestmark = [
    pytest.mark.ray,
    # Ray leaves pipes and sockets of the processes it started to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PROTOCOL = tiny_protocol(reads_each=4, certificate={"q": 0.3})
FILES = (*(f"{name}.jsonl" for name in ("campaigns", "rounds", "declarations", "reads")),
         "manifest.json")  # fmt: skip
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head and a second node of one CPU each."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
    cluster.add_node(**NODE)
    cluster.wait_for_nodes()
    yield cluster
    cluster.shutdown()
    del os.environ["RAY_USAGE_STATS_ENABLED"]


def run(agents: object, **changes: Any) -> RunResult:
    arguments: dict[str, Any] = {
        "registry": tiny_registry(), "protocol": PROTOCOL, "seeds": range(6),
    }  # fmt: skip
    return evaluate(agents, **(arguments | changes))


def on(cluster: Any) -> dict[str, Any]:
    return {"executor": "ray", "address": cluster.address}


def check_same_bytes(folders: Sequence[Path]) -> None:
    for name in FILES:
        first, *others = ((folder / name).read_bytes() for folder in folders)
        assert first.strip(), name
        assert all(other == first for other in others), name


def wait_for(path: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while not path.exists():
        if time.monotonic() > until:
            msg = f"{path.name} did not appear"
            raise TimeoutError(msg)
        time.sleep(0.02)


def test_traces_travel_back_and_failed_campaigns_take_theirs_along(
    cluster: Any, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"

    class Recovers(Asks):
        def _ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
            if request["round"] == 2 and not flag.exists():
                raise ProposerFailed("server down")
            return answer_to(request)

    far = tmp_path / "far"
    assert len(run({"a": Recovers}, out=far, **on(cluster)).failures) == 6
    first = recorded(far)
    assert sum(first.values()) == 6 * 2 * ATTEMPTS
    flag.touch()
    run({"a": Recovers}, out=far, retry_failed=True, **on(cluster))
    run({"a": Recovers}, out=tmp_path / "here")
    assert recorded(far) == recorded(tmp_path / "here")
    assert set(recorded(far).values()) == {1}
    assert rows_of(far) == rows_of(tmp_path / "here")


class Where:
    """Work that says on which node it was played."""

    def play(self, task: int) -> tuple[int, str]:
        import ray

        time.sleep(0.05)
        return task, ray.get_runtime_context().get_node_id()


def test_both_machines_play_and_results_in_order_stand_as_the_tasks_do(cluster: Any) -> None:
    executor = Executor(kind="ray", address=cluster.address)
    for play in (execute, in_order):
        results = list(play(Where(), range(40), executor=executor))
        assert sorted(task for task, _ in results) == list(range(40))
        assert len({node for _, node in results}) == 2
    assert [task for task, _ in results] == list(range(40))


def test_the_executor_changes_no_byte(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Mine:\n    def propose(self, view):\n        return view.identifiers[:3]\n"
    )

    class Local(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            return view.identifiers[-view.slots :]

    agents = {"learner": "module-learner", "file": str(tmp_path / "mine.py"), "local": Local}
    ways: dict[str, dict[str, Any]] = {"here": {}, "pool": {"jobs": 2}, "ray": on(cluster)}
    for name, way in ways.items():
        run(agents, out=tmp_path / name, **way)
    check_same_bytes([tmp_path / name for name in ways])


def test_a_worker_killed_in_the_middle_changes_no_byte(cluster: Any, tmp_path: Path) -> None:
    victim, killed = tmp_path / "victim", tmp_path / "killed"
    by_name = {"victim": str(victim), "killed": str(killed)}

    class Waits(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            from pathlib import Path

            if view.round == 1 and not Path(by_name["killed"]).exists():
                part = Path(f"{by_name['victim']}-{os.getpid()}")
                part.write_text(str(os.getpid()))
                part.rename(by_name["victim"])
                time.sleep(60)
            return view.identifiers[-view.slots :]

    def kill() -> None:
        wait_for(victim)
        pid = int(victim.read_text())
        killed.touch()
        os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    # One seed, so that no other process waits as well.
    run(Waits, seeds=[3], out=tmp_path / "ray", **on(cluster))
    killer.join()
    assert int(victim.read_text()) != os.getpid()
    run(Waits, seeds=[3], out=tmp_path / "here")
    check_same_bytes([tmp_path / "here", tmp_path / "ray"])


def test_a_machine_lost_in_the_middle_changes_no_byte(cluster: Any, tmp_path: Path) -> None:
    node = cluster.add_node(**NODE)
    cluster.wait_for_nodes()
    held, gone, lost_id = str(tmp_path / "held"), str(tmp_path / "gone"), node.node_id

    class Waits(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            from pathlib import Path

            import ray

            if not Path(gone).exists():
                if ray.get_runtime_context().get_node_id() == lost_id:
                    Path(held).touch()
                    time.sleep(60)
                wait_for(Path(gone))
            return view.identifiers[-view.slots :]

    def remove() -> None:
        wait_for(Path(held))
        cluster.remove_node(node, allow_graceful=False)
        Path(gone).touch()

    remover = threading.Thread(target=remove)
    remover.start()
    run(Waits, out=tmp_path / "ray", **on(cluster))
    remover.join()
    assert Path(held).exists()
    run(Waits, out=tmp_path / "here")
    run(Waits, out=tmp_path / "pool", jobs=2)
    check_same_bytes([tmp_path / name for name in ("here", "pool", "ray")])


def test_an_agents_mistake_is_told_as_in_this_process(cluster: Any, tmp_path: Path) -> None:
    path = tmp_path / "breaks.py"
    path.write_text(
        "class Breaks:\n    def propose(self, view):\n        raise ValueError('mine')\n"
    )
    told = []
    for way in ({}, on(cluster)):
        with pytest.raises(AgentError, match=r"mine \(breaks.py, line 3\)") as caught:
            run(str(path), seeds=[2], **way)
        told.append((type(caught.value), str(caught.value)))
    assert told[0] == told[1]


def test_an_agent_that_ends_its_process_every_time_is_a_clear_error(cluster: Any) -> None:
    parent = os.getpid()

    class Dies(Nothing):
        def propose(self, view: View) -> Sequence[str]:
            if os.getpid() != parent:
                os._exit(9)
            return ()

    with pytest.raises(RunError, match="lost a task for good, after 3 more tries"):
        run(Dies, seeds=[0], **on(cluster))


def test_a_cluster_with_another_version_of_the_package_is_refused(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_ray, "__version__", "0.0.7")
    with pytest.raises(RunError, match=r"started with 0\.0\.7; .*same version on every machine"):
        run("random", **on(cluster))


def test_a_process_that_was_connected_stays_connected(cluster: Any) -> None:
    import ray

    ray.init(address=cluster.address, log_to_driver=False)
    try:
        assert run("random", executor="ray").status == "complete"
        assert ray.is_initialized()
        with pytest.raises(RunError, match="is connected to the Ray cluster"):
            run("random", executor="ray", address="127.0.0.1:1")
    finally:
        ray.shutdown()


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:{free}"])
def test_an_address_without_a_cluster_is_told_at_once(address: str) -> None:
    with socket.socket() as taken:
        # Bound and not listened on: nobody answers there, and nobody else gets it.
        taken.bind(("127.0.0.1", 0))
        address = address.format(free=taken.getsockname()[1])
        began = time.monotonic()
        with pytest.raises(RunError, match=f"Cannot use a Ray cluster at '{address}'"):
            run("random", executor="ray", address=address)
    assert time.monotonic() - began < 15


def test_ctrl_c_ends_a_run_which_then_goes_on_to_the_same_bytes(
    cluster: Any, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(
        "from pathlib import Path\n"
        "import time\n"
        "class Mine:\n"
        "    def propose(self, view):\n"
        f"        if Path({str(tmp_path / 'slow')!r}).exists():\n"
        f"            Path({str(tmp_path / 'begun')!r}).touch()\n"
        "            time.sleep(0.2)\n"
        "        return view.identifiers[:3]\n"
    )
    out = tmp_path / "run"
    said = ["run", "--panel", "synthetic-depmap:dev", "--seeds", "0-3", "--keep-reads",
            "--agent", "mine:Mine"]  # fmt: skip
    cads = [sys.executable, "-m", "cads_env"]
    way = ["--executor", "ray", "--address", cluster.address, "--out", str(out)]
    (tmp_path / "slow").touch()
    # A shell's background job begins with Ctrl-C ignored, and hands that on.
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [*cads, *said, *way], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    signal.signal(signal.SIGINT, heard)
    wait_for(tmp_path / "begun")
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, told
    assert "interrupted" in told
    assert "Traceback" not in told
    (tmp_path / "slow").unlink()
    subprocess.run([*cads, *said, *way], cwd=tmp_path, check=True)
    subprocess.run([*cads, *said, "--out", str(tmp_path / "here")], cwd=tmp_path, check=True)
    check_same_bytes([out, tmp_path / "here"])
