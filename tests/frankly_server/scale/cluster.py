# SPDX-License-Identifier: Apache-2.0
"""Spark standalone cluster on this machine, whose master and workers can be killed."""

import importlib.util
import os
import signal
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Self

from tests.ports import free_port


class Cluster:
    """A master and its workers; programs connect to `url`."""

    def __init__(self, home: Path, workers: int = 2, cores: int = 1, memory: str = "1g") -> None:
        found = importlib.util.find_spec("pyspark")
        assert found is not None, (
            "Spark is not installed: pip install pyspark, and a Java 17 or newer"
        )
        assert found.origin is not None
        self._spark, self._home = Path(found.origin).parent, home
        self._workers, self._options = workers, ["-c", str(cores), "-m", memory]
        self._port, self._page = free_port(), free_port()
        self.url = f"spark://127.0.0.1:{self._port}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        listen = ["--host", "127.0.0.1", "--port", str(self._port), "--webui-port", str(self._page)]
        self._run("master", "org.apache.spark.deploy.master.Master", *listen)
        for i in range(self._workers):
            work = [
                "-d",
                str(self._home / f"work-{i}"),
                "--webui-port",
                str(free_port()),
                *self._options,
            ]
            self._run(f"worker-{i}", "org.apache.spark.deploy.worker.Worker", *work, self.url)
        self._wait(self._workers)
        return self

    def __exit__(self, *_error: object) -> None:
        for process in self._processes:
            self._kill(process)

    def kill_worker(self) -> None:
        """Send SIGKILL to the last worker and its executors."""
        self._kill(self._processes[-1])

    def _run(self, name: str, *command: str) -> None:
        environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(self._spark)}
        with (self._home / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [str(self._spark / "bin" / "spark-class"), *command],
                    env=environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def _wait(self, workers: int) -> None:
        """Wait until this many workers have registered with the master."""
        deadline = time.monotonic() + 600
        while True:
            try:
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{self._page}/json/", timeout=5
                ) as answer:
                    if f'"aliveworkers" : {workers}'.encode() in answer.read():
                        return
            except OSError:
                pass
            logs = "".join(path.read_text()[-1000:] for path in sorted(self._home.glob("*.log")))
            assert time.monotonic() < deadline, logs
            time.sleep(0.2)

    @staticmethod
    def _kill(process: "subprocess.Popen[bytes]") -> None:
        """Kill a process and its children, because executors are in the process group of their worker."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
