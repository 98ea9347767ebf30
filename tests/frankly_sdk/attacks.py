# SPDX-License-Identifier: Apache-2.0
"""Server whose operator attacks the trust that devices have in it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SigningKey
from frankly_protocol.trust import KeysDocument, LogProof, write_chain
from frankly_sdk import NetworkError
from frankly_sdk.transport import Reply

from tests.frankly_protocol.samples import keys_document, ldp_block, sealed_keys, survey
from tests.frankly_protocol.trust.samples import FakeLog, role
from tests.frankly_sdk.fakes import JSON, FakeServer

DOCUMENT = survey(ldp_block())
OTHER = survey(ldp_block(epsilon="0.5"))
LOGGED_KEYS = replace(keys_document(), log=role())


@dataclass
class Server(FakeServer):
    """A server with a log and a key chain."""

    document: SurveyDocument = DOCUMENT
    keys: bytes = sealed_keys(LOGGED_KEYS)
    log: FakeLog = field(default_factory=lambda: FakeLog([OTHER.digest, DOCUMENT.digest]))
    chain: list[bytes] = field(default_factory=list)
    proof: Callable[[LogProof], bytes] = LogProof.to_bytes
    leaves: Callable[[bytes], bytes] = bytes
    down: tuple[str, ...] = ()

    def get(self, url: str, limit: int) -> Reply:
        """Serve the log and the chain as well as the document."""
        path = url.partition("collect.example")[2]
        if any(part in path for part in self.down):
            raise NetworkError("down")
        if path.startswith("/v1/log/proof/"):
            self.fetched.append(url)
            digest = path.rpartition("/")[2]
            if digest not in self.log.digests:
                return Reply(404, "application/problem+json", None, b"{}")
            return Reply(200, "text/plain", None, self.proof(self.log.proof(digest)))
        if path.startswith("/v1/log/leaves"):
            self.fetched.append(url)
            tree = self.log.tree()
            return Reply(
                200, "application/octet-stream", None, self.leaves(b"".join(tree.leaves(tree.size)))
            )
        if path == "/v1/keys/chain":
            self.fetched.append(url)
            return Reply(200, JSON, None, write_chain(self.chain or [self.keys]))
        return super().get(url, limit)


def keys(document: KeysDocument, *signers: SigningKey) -> Callable[[Server], None]:
    """Serve other keys, together with their older versions."""

    def act(server: Server) -> None:
        served = server.chain or [server.keys]
        server.keys = sealed_keys(document, *signers)
        server.chain = [*served[: document.version - 1], server.keys]

    return act
