"""``judgetree serve``: the HTTP server."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from ...graphs.config.rag_config import RagConfig
from ...modules.errors import DependencyError, SettingsError
from ..server.serving.options import SourcesForm
from ..terminal.terminal import busy, say
from .config_options import takes


@takes(RagConfig)
def serve(  # noqa: PLR0913 - one parameter an option
    *,
    collection: Annotated[
        list[str] | None,
        typer.Option("--collection", "-c", metavar="NAME", help="Collection to serve, may be repeated; default: all."),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="System that answers, may be repeated; default: judge and naive."),
    ] = None,
    host: Annotated[
        str, typer.Option(rich_help_panel="Network", help="Address to listen on; others than loopback need keys.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, rich_help_panel="Network", help="Port; 0 takes any free one.")
    ] = 8808,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel="Network",
            help="Host name under which clients reach the server, may be repeated.",
        ),
    ] = None,
    fast_llm: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", rich_help_panel="Models", help="Model of titles and tags; default: that of follow-ups."
        ),
    ] = None,
    name_llm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=MODEL",
            rich_help_panel="Models",
            help="Model that requests may choose by this name, may be repeated.",
        ),
    ] = None,
    sources: Annotated[
        SourcesForm | None,
        typer.Option(
            help="Where chat completions name sources: annotations, a list behind the answer, both or nowhere; "
            "default: annotations."
        ),
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=3_600,
            metavar="S",
            help="Seconds for which a question runs on after its connection was lost; default: 30 of the web page, "
            "else 0.",
        ),
    ] = None,
    runs: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder with evaluation runs to show; default: none.")
    ] = None,
    expire_days: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel="Limits of the server",
            help="Delete conversations after N days without a turn.",
        ),
    ] = None,
    max_runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel="Limits of the server",
            help="Questions that are answered at once; default 64.",
        ),
    ] = None,
    requests_per_minute: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel="Limits of the server",
            help="Requests of one key in a minute, or of one address; default 600.",
        ),
    ] = None,
    max_connections: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", rich_help_panel="Network", help="Connections that are open at once; default 1000."
        ),
    ] = None,
    max_connections_per_address: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel="Network",
            help="Connections of one address, or of one IPv6 network; default 250.",
        ),
    ] = None,
    trusted_proxies: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            rich_help_panel="Network",
            help="Address or network of proxies whose X-Forwarded-For is believed, may be repeated.",
        ),
    ] = None,
    shutdown_seconds: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="S",
            rich_help_panel="Limits of the server",
            help="Seconds that running questions get when the server is ended.",
        ),
    ] = None,
    lenient: Annotated[
        bool,
        typer.Option("--lenient", help="Ignore chat parameters without an effect, such as tools, in place of 400."),
    ] = False,
    log_json: Annotated[bool, typer.Option("--log-json", help="Log each request as a JSON document.")] = False,
    keys: Annotated[bool, typer.Option("--keys", help="Demand a key on loopback too.")] = False,
    config: RagConfig,
) -> None:
    """Serve chat completions for other programs, and a web page, until Ctrl-C.

    Limits, such as --max-llm-calls, are the most that a request may ask for. Other keys are defaults: a request may
    have more --topk, up to 100, and its own --search-type, --thinking and --policy.

    Examples:
        judgetree serve
        judgetree serve -c handbook --port 8900 --keys
    """
    with busy():
        try:
            from ..server.application import create_app
            from ..server.safety.descriptors import within_descriptors
            from ..server.safety.start import DrainingServer, check_can_start, listening_socket, uvicorn_config
            from ..server.serving.options import ServerOptions
        except ImportError as error:
            raise DependencyError(
                f'`judgetree serve` needs the extra server ({error.name} is missing): pip install "judgetree[server]".'
            ) from error
        from ...modules.settings import load_settings
        from ..server.keys.book import KeyBook
        from ..server.keys.tables import KeyTables

    _log(as_json=log_json)
    given = {
        "collections": tuple(collection) if collection else None,
        "systems": tuple(system) if system else None,
        "allowed_hosts": tuple(allowed_host or ()),
        "config": config,
        "fast_llm": fast_llm,
        "llms": _named(name_llm or []),
        "sources": sources,
        "grace_s": grace,
        "runs": runs,
        "expire_days": expire_days,
        "max_runs": max_runs,
        "requests_per_minute": requests_per_minute,
        "max_connections": max_connections,
        "max_connections_per_address": max_connections_per_address,
        "trusted_proxies": tuple(part.strip() for each in trusted_proxies or () for part in each.split(",")),
        "max_shutdown_seconds": shutdown_seconds,
    }
    options = ServerOptions.model_validate(
        {"host": host, "port": port, "needs_keys": keys, "lenient": lenient}
        | {k: v for k, v in given.items() if v is not None}
    )
    options = within_descriptors(options)
    settings = config.applied_to(load_settings())
    if options.demands_keys:
        with closing(KeyTables(settings)) as tables:
            check_can_start(options, KeyBook(tables))
    server = uvicorn_config(create_app(settings, options), options)
    with listening_socket(options) as listening:
        name = f"[{host}]" if ":" in host else host
        say(f"Serving on http://{name}:{listening.getsockname()[1]} - Ctrl-C ends it.")
        DrainingServer(server).run(sockets=[listening])


def _named(given: list[str]) -> dict[str, str]:
    """Return the models of ``NAME=MODEL``.

    Raises:
        SettingsError: A part is missing, or the name has an "@".
    """
    named = {}
    for each in given:
        name, _, spec = each.partition("=")
        if not name.strip() or not spec.strip() or "@" in name:
            raise SettingsError(f"--name-llm {each!r} is not allowed. Give NAME=MODEL, with a name without @.")
        named[name.strip()] = spec.strip()
    return named


def _log(*, as_json: bool) -> None:
    """Log what fails to standard error, and requests too as JSON; texts of questions and documents are in no line."""
    import logging

    from ..server.watching.request_log import JsonLines, PlainLines
    from ..terminal.log_lines import LogLines

    if not as_json:
        if any(isinstance(each, LogLines) for each in logging.getLogger().handlers):
            return  # --debug shows all there is
        lines = LogLines()
        lines.setFormatter(PlainLines("%(asctime)s %(levelname)s %(message)s"))
        logging.getLogger("judgetree.app.server").addHandler(lines)
        return
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("judgetree.server").setLevel(logging.INFO)
