"""Makes the key that the API server signs service account tokens with.

Called by the API server's start. Written out by hand, since neither a cryptography package nor
the openssl command is a given: a P-256 private key is a random number in a fixed envelope, and
Go works out the public half itself.
"""

from __future__ import annotations

import base64
import secrets

# The order of the P-256 group; a private key is a number from 1 to one less.
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_BEFORE = bytes.fromhex("3031020101" + "0420")  # SEQUENCE { INTEGER 1, OCTET STRING of 32 bytes
_AFTER = bytes.fromhex("a00a06082a8648ce3d030107")  # [0] OID prime256v1 }


def private_key_pem() -> str:
    """A new P-256 private key as RFC 5915 has it, in PEM."""
    number = secrets.randbelow(_ORDER - 1) + 1
    encoded = base64.encodebytes(_BEFORE + number.to_bytes(32, "big") + _AFTER).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{encoded}-----END EC PRIVATE KEY-----\n"
