# SPDX-License-Identifier: Apache-2.0
"""Passkeys in Chromium, with the virtual authenticator of the DevTools protocol."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import CDPSession

from tests.browser.admin.conftest import PASSWORD, Desk


class Device:
    """Virtual authenticator; `recognise` sets whether it recognises its owner."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        session.send("WebAuthn.enable")
        options = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
            "automaticPresenceSimulation": True,
        }
        made = session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
        self._id = {"authenticatorId": made["authenticatorId"]}

    def recognise(self, yes: bool) -> None:
        self._session.send("WebAuthn.setUserVerified", {**self._id, "isUserVerified": yes})

    def credentials(self) -> int:
        return len(self._session.send("WebAuthn.getCredentials", self._id)["credentials"])


@pytest.fixture
def device(desk: Desk) -> Iterator[Device]:
    session = desk.page.context.new_cdp_session(desk.page)
    yield Device(session)
    session.send("WebAuthn.disable")
    session.detach()


def test_a_passkey_is_added_and_signs_in_alone(desk: Desk, device: Device) -> None:
    page = desk.page
    desk.open("/admin/sign-in")
    desk.check("sign-in-passkey")
    desk.sign_in("ada@example.org", PASSWORD)
    desk.open("/admin/account")
    desk.check("account-passkeys")
    page.get_by_label("Its name").fill("work laptop")
    page.locator("#add-passkey").fill(PASSWORD)
    desk.press("Add it")
    assert device.credentials() == 1
    assert len(page.locator("pre").inner_text().split()) == 10
    assert "work laptop" in page.locator("#passkey").inner_text()
    desk.check("account-passkey-added")

    desk.press("Sign out")
    device.recognise(False)
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.get_by_text("No passkey was used").wait_for()
    assert page.url.endswith("/admin/sign-in")
    device.recognise(True)
    desk.press("Sign in with a passkey")
    assert page.url.endswith("/admin/surveys")

    # The password alone does not sign in; the password followed by the passkey does.
    desk.press("Sign out")
    desk.sign_in("ada@example.org", PASSWORD)
    assert page.url.endswith("/admin/sign-in/code")
    desk.check("sign-in-code-passkey")
    desk.press("Sign in with a passkey")
    assert page.url.endswith("/admin/surveys")

    desk.open("/admin/account")
    page.locator("#remove-passkey").fill(PASSWORD)
    desk.press("Remove it")
    assert page.locator("#passkey").count() == 0
    desk.press("Sign out")
    desk.sign_in("ada@example.org", PASSWORD)
    assert page.url.endswith("/admin/surveys")
    assert desk.messages == []


def test_without_a_passkey_the_browser_says_so_and_nothing_is_sent(
    desk: Desk, device: Device
) -> None:
    desk.page.context.clear_cookies()
    desk.open("/admin/sign-in")
    sent: list[str] = []
    desk.page.on("request", lambda request: sent.append(request.method))
    desk.page.get_by_role("button", name="Sign in with a passkey").click()
    desk.page.get_by_text("No passkey was used").wait_for()
    assert "POST" not in sent
    assert desk.messages == []
