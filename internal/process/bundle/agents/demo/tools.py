"""Tools of the demo. Each function that does not begin with _ is a tool: the model reads its docstring."""

import json
import os
import urllib.error
import urllib.request


# A tool that is declared dangerous asks first. This one tells another party the address of this computer.
# raddle: dangerous
def get_ipinfo():
    """Tell under which address the internet sees this computer, and where that seems to be."""
    address = os.environ.get("IPINFO_URL", "https://ipinfo.io/json")
    request = urllib.request.Request(address, headers={"Accept": "application/json", "User-Agent": "raddle-demo"})
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            info = json.load(reply)
    except (urllib.error.URLError, TimeoutError, ValueError) as error:
        return {"error": f"{address} could not be asked: {error}"}
    return {name: info[name] for name in ("ip", "city", "region", "country", "timezone") if name in info}
