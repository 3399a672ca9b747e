"""The demo's site in Airflow's UI, on loopback, until Ctrl-C. ``make demo-ui`` runs this."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from demo.site import CONNECTIONS, HOME, READOUTS, build, derive
from tests.typo3.scheduler import RealAirflow

USER = "admin"

#: The DAGs that work on the demo's site.
_DAGS = ("nrllm_observed_outcomes", "nrllm_readout")


def main() -> None:
    """Show the site until somebody presses Ctrl-C, and end all that was started."""
    # SIGINT too: a shell that starts a program in the background lets it ignore that one.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.default_int_handler)
    print("Building the site, and starting Airflow on it, for about a minute ...", flush=True)
    password = secrets.token_urlsafe(9)
    try:
        with served(password) as airflow:
            airflow.schedule()
            print(f"\n  {airflow.address}/     user: {USER}   password: {password}\n", flush=True)
            print("Browse > AI outcomes has the readout. The DAGs run when you trigger them:", ", ".join(_DAGS))
            print("Ctrl-C ends it.", flush=True)
            airflow.wait(lambda: False, timeout=float("inf"))
    except KeyboardInterrupt:
        print("\nEnded.")


@contextmanager
def served(password: str) -> Iterator[RealAirflow]:
    """Build the site, derive and read it once, and serve the UI on it; at the end stop all that was started."""
    build()
    derive()
    directory = HOME / "airflow-ui"
    directory.mkdir(exist_ok=True)
    airflow = RealAirflow(directory, CONNECTIONS, _DAGS)
    airflow.let_in({USER: password})
    airflow.environment["AIRFLOW__NRLLM__READOUT_PATH"] = str(READOUTS)
    try:
        airflow.start()
        yield airflow
    finally:
        # A second Ctrl-C is not to leave anything behind.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        airflow.stop()


if __name__ == "__main__":
    main()
