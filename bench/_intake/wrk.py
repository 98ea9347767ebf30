# SPDX-License-Identifier: Apache-2.0
"""wrk as a client: sends reports with random ids over persistent connections for some seconds."""

import json
import subprocess
import tempfile
from pathlib import Path

from _intake.load import Loaded, bodies
from _intake.served import Served

_REPORTS, _THREADS = 500, 1
SCRIPT = """
local reports, path = {}, nil
local hex = string.format
function init(given)
  path = given[1]
  for line in io.lines(given[2]) do reports[#reports + 1] = line end
  local random = io.open("/dev/urandom", "rb")
  local seed = 0
  for _ = 1, 4 do seed = seed * 256 + string.byte(random:read(1)) end
  math.randomseed(seed)
  random:close()
  wrk.headers["Content-Type"] = "application/json"
end
function request()
  local id = {}
  for i = 1, 8 do id[i] = hex("%04x", math.random(0, 65535)) end
  local body = reports[math.random(#reports)]:gsub("@+", table.concat(id), 1)
  return wrk.format("POST", path, nil, body)
end
function done(summary, latency)
  local e = summary.errors
  io.write("\\nRESULT " .. hex('{"requests":%d,"us":%d,"p50_us":%d,"p99_us":%d,"failed":%d}\\n', summary.requests,
    summary.duration, latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


def run(server: Served, connections: int, seconds: float) -> Loaded:
    """Send reports for some seconds; RuntimeError if a request failed."""
    drawn = bodies(server.document, _REPORTS)
    with tempfile.TemporaryDirectory() as folder:
        script, reports = Path(folder) / "reports.lua", Path(folder) / "reports"
        script.write_text(SCRIPT)
        reports.write_bytes(b"".join(_anonymous(body) + b"\n" for body in drawn))
        path = f"/v1/surveys/{server.document.survey}/reports"
        command = ["wrk", f"-t{_THREADS}", f"-c{connections}", f"-d{seconds}s", "-s", str(script)]
        cpu = server.cpu_s()
        process = subprocess.run(
            [*command, f"http://127.0.0.1:{server.port}", "--", path, str(reports)],
            capture_output=True,
            text=True,
            check=True,
        )
        cpu = server.cpu_s() - cpu
    printed = json.loads(process.stdout.rpartition("RESULT ")[2])
    if printed["failed"] or not printed["requests"]:
        raise RuntimeError(f"{printed['failed']} of {printed['requests']} requests failed")
    return Loaded(
        printed["requests"] * 1e6 / printed["us"],
        printed["p50_us"] / 1e6,
        printed["p99_us"] / 1e6,
        cpu / printed["requests"],
    )


def _anonymous(body: bytes) -> bytes:
    """Return a report with a placeholder instead of its id."""
    return body.replace(json.loads(body)["id"].encode(), b"@" * 32)
