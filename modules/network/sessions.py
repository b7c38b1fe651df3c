"""Sessions of ``requests``, for libraries that take one, with the proxies that ``proxy_for`` chooses."""

from __future__ import annotations

import os
from typing import Any

import requests

from .proxies import check_no_proxy_reply, naming_proxy


class RoutedSession(requests.Session):
    """A session that goes through the proxy of each address, and trusts the certificates of SSL_CERT_FILE too."""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """Send a request.

        Raises:
            ProxyFault: The proxy cannot be used, or refuses.
            RequestException: No reply came.
        """
        url = str(request.url)
        if options.get("verify") is True and os.environ.get("SSL_CERT_FILE"):
            options["verify"] = os.environ["SSL_CERT_FILE"]
        with naming_proxy(url) as proxy:
            options["proxies"] = {} if proxy is None else {url.partition(":")[0].lower(): proxy.url}
            response = super().send(request, **options)
            check_no_proxy_reply(proxy, url, response.status_code)
        return response
