"""Signs in with the MCP SDK for Python and searches.

    python client.py PUBLIC-URL
"""

import asyncio
import sys
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata

SERVER = sys.argv[1]
REDIRECT = "http://127.0.0.1:1/callback"
METADATA = {"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"}


def want(condition, what, got):
    if not condition:
        raise SystemExit(f"python: want {what}, got {got}")
    print(f"python: {what}")


class Storage:
    """The tokens of one user, and the client, which is registered with the provider."""

    tokens = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return OAuthClientInformationFull(client_id="python", **METADATA)

    async def set_client_info(self, info):
        raise SystemExit("python: the client was registered again")


class Browser:
    """Chooses a user, and follows the redirects to the one with the code."""

    def __init__(self, user):
        self.user = user

    async def open(self, url):
        self.asked = parse_qs(urlsplit(url).query)
        at = url + "&" + urlencode({"connector_id": self.user})
        async with httpx2.AsyncClient() as client:
            for _ in range(10):
                answer = await client.get(at)
                at = urljoin(at, answer.headers["location"])
                if at.startswith(REDIRECT):
                    break
        self.answer = {name: values[0] for name, values in parse_qs(urlsplit(at).query).items()}

    async def code(self):
        return AuthorizationCodeResult(code=self.answer["code"], state=self.answer["state"])


def provider(path, user):
    browser, storage = Browser(user), Storage()
    oauth = OAuthClientProvider(SERVER + path, OAuthClientMetadata(client_name="MCP client", **METADATA), storage,
                                browser.open, browser.code)
    return oauth, browser, storage


async def search(path):
    oauth, browser, _ = provider(path, "anna")
    async with httpx2.AsyncClient(auth=oauth, timeout=60) as http:
        async with Client(streamable_http_client(SERVER + path, http_client=http)) as client:
            tools = (await client.list_tools()).tools
            name = next(tool.name for tool in tools if tool.name.endswith("search"))
            result = await client.call_tool(name, {"query": "holidays"})
    want("25 days" in str(result), f"a hit of {name} at {path}", result)
    want(browser.asked["resource"] == [SERVER + path], f"resource {SERVER + path}", browser.asked)
    want(browser.asked["code_challenge_method"] == ["S256"], "PKCE", browser.asked)


async def refused():
    oauth, _, storage = provider("/mcp", "otto")
    async with httpx2.AsyncClient(auth=oauth, timeout=60) as http:
        answer = await http.post(SERVER + "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
                                 headers={"accept": "application/json, text/event-stream"})
    want(storage.tokens is not None, "a token for a user without rights", storage.tokens)
    header = answer.headers.get("www-authenticate")
    want(answer.status_code == 403 and 'error="insufficient_scope"' in header,
         "403 insufficient_scope for a user without rights", f"{answer.status_code} {header}")


async def main():
    await search("/mcp")
    await search("/mcp/docs")
    await refused()


asyncio.run(main())
