# SPDX-License-Identifier: Apache-2.0
"""`frankly serve`: check settings, keys and database, then serve until SIGTERM."""

import click

from frankly_server.app import create_app
from frankly_server.cli.console import json_option, remarks, respond
from frankly_server.cli.gunicorn_server import Production
from frankly_server.cli.services import open_services
from frankly_server.cli.waitress_server import Server, stopped_by_signals
from frankly_server.settings import Settings
from frankly_server.web import logs


@click.command()
@click.option("--host", help="Address to listen on [default: 127.0.0.1].")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port; 0 chooses a free one [default: 8000]."
)
@click.option(
    "--production", is_flag=True, help="Use gunicorn, for a container behind a proxy that ends TLS."
)
@json_option
def serve(host: str | None, port: int | None, production: bool, as_json: bool) -> None:
    """Serve documents, reports and estimates.

    The server refuses to start with keys, a schema or durability settings that could break a
    promise. On SIGTERM it answers requests in flight for up to 10 seconds and exits with code 0.
    """
    settings = Settings.load()
    listen_on = settings.host if host is None else host
    with open_services(settings) as services:
        services.check_start()
        app = create_app(settings, services=services)
        listen_port = settings.port if port is None else port

        def announce(bound_port: int) -> None:
            _announce(f"[{listen_on}]" if ":" in listen_on else listen_on, bound_port, as_json)
            if fault := services.database.write_fault:
                remarks().print(f"No report can be stored: the database: {fault}", markup=False)
            logs.configure()

        if production:
            Production(
                app,
                host=listen_on,
                port=listen_port,
                threads=settings.threads,
                ready=announce,
                request_timeout_s=settings.request_timeout_s,
                started=services.wake,
                stopping=services.stop_searches,
            ).run()
            return
        server = Server(
            app,
            host=listen_on,
            port=listen_port,
            threads=settings.threads,
            body_limit_bytes=settings.body_limit_bytes,
            request_timeout_s=settings.request_timeout_s,
        )
        # Printed only when the socket listens, so that a client that reads the address can connect.
        announce(server.port)
        services.wake()

        def stop() -> None:
            services.stop_searches()
            server.stop()

        with stopped_by_signals(stop):
            server.run()


def _announce(host: str, port: int, as_json: bool) -> None:
    url = f"http://{host}:{port}"
    respond(
        as_json, {"status": "serving", "url": url}, f"Frankly answers at {url} (Ctrl-C stops it)."
    )
