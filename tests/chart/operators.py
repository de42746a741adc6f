"""Schemas of the fields that the chart uses in objects of External Secrets and cert-manager.

They are not the operators' own definitions (external-secrets.io/v1, cert-manager.io/v1). They have
the types of the fields in use and which fields are required, and reject all other fields.
"""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string", "minLength": 1}
_NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "maxLength": 253}
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_DURATION = {"type": "string", "pattern": "^([0-9]+(h|m|s))+$"}
_NAMES = {"type": "array", "items": _TEXT, "minItems": 1}


def _closed(*required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _object(version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return _closed(
        *("apiVersion", "kind", "metadata", "spec"),
        apiVersion={"const": version},
        kind={"const": kind},
        metadata={"type": "object", "required": ["name"]},
        spec=spec,
    )


_REMOTE = _closed("key", key=_TEXT, property=_TEXT, version=_TEXT)
_REFERENCE = _closed("name", kind={"enum": ["Issuer", "ClusterIssuer"]}, name=_NAME, group=_TEXT)
_PRIVATE_KEY = _closed(
    algorithm={"enum": ["RSA", "ECDSA", "Ed25519"]},
    size={"type": "integer"},
    rotationPolicy={"enum": ["Never", "Always"]},
)
_SECRET = _closed(
    "name",
    name=_NAME,
    creationPolicy={"enum": ["Owner", "Orphan", "Merge", "None"]},
    template=_closed(data=_TEXTS, type=_TEXT, engineVersion={"const": "v2"}),
)

SCHEMAS = {
    "ExternalSecret": _object(
        "external-secrets.io/v1",
        "ExternalSecret",
        _closed(
            "target",
            refreshInterval=_DURATION,
            secretStoreRef=_closed(
                "name", kind={"enum": ["SecretStore", "ClusterSecretStore"]}, name=_NAME
            ),
            data={
                "type": "array",
                "items": _closed("secretKey", "remoteRef", secretKey=_TEXT, remoteRef=_REMOTE),
            },
            dataFrom={"type": "array", "items": _closed("extract", extract=_REMOTE)},
            target=_SECRET,
        ),
    ),
    "Certificate": _object(
        "cert-manager.io/v1",
        "Certificate",
        _closed(
            *("secretName", "issuerRef"),
            secretName=_NAME,
            issuerRef=_REFERENCE,
            commonName={"type": "string", "maxLength": 64},
            dnsNames=_NAMES,
            ipAddresses=_NAMES,
            isCA={"type": "boolean"},
            privateKey=_PRIVATE_KEY,
            usages={
                "type": "array",
                "items": {"enum": ["server auth", "client auth", "cert sign"]},
            },
            duration=_DURATION,
            renewBefore=_DURATION,
        ),
    ),
    "Issuer": _object(
        "cert-manager.io/v1",
        "Issuer",
        _closed(selfSigned=_closed(), ca=_closed("secretName", secretName=_NAME)),
    ),
}
