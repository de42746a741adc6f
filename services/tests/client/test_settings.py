from pathlib import Path
from typing import Any

import pytest

from remy_rpc.settings import Address, SettingsError, TlsFiles
from remy_services.client.settings import ConnectionSettings, SettingsSource, combine_settings


def settings(
    given: SettingsSource | None = None,
    environment: dict[str, str] | None = None,
    file: SettingsSource | None = None,
) -> ConnectionSettings:
    return combine_settings(
        given or SettingsSource(),
        environment or {},
        file or SettingsSource(),
        file_name="config.yaml",
    )


def token(found: ConnectionSettings) -> str | None:
    return None if found.token is None else found.token.text


def test_the_default_is_a_local_coordinator() -> None:
    assert settings() == ConnectionSettings(Address("127.0.0.1", 50051), None, None)


def test_remote_coordinators_use_tls_by_default() -> None:
    assert settings(SettingsSource(coordinator="farm.example.org")).tls == TlsFiles()
    assert settings(SettingsSource(coordinator="farm.example.org", insecure=True)).tls is None


@pytest.mark.parametrize("name", ["tls_ca", "tls_server_name"])
def test_any_tls_flag_enables_tls_locally(name: str) -> None:
    values: dict[str, Any] = {name: "x"}
    assert settings(SettingsSource(**values)).tls is not None


def test_flags_override_the_file() -> None:
    file = SettingsSource(
        coordinator="farm:1", tls_ca="theirs.pem", tls_server_name="farm.internal"
    )
    assert settings(file=file).tls == TlsFiles(ca=Path("theirs.pem"), server_name="farm.internal")
    found = settings(SettingsSource(tls_ca="mine.pem"), file=file)
    assert found.address == Address("farm", 1)
    assert found.tls == TlsFiles(ca=Path("mine.pem"), server_name="farm.internal")
    assert settings(SettingsSource(insecure=True), file=file).tls is None


def test_tls_flags_override_an_insecure_file() -> None:
    file = SettingsSource(coordinator="farm:1", insecure=True)
    assert settings(SettingsSource(tls_ca="mine.pem"), file=file).tls == TlsFiles(
        ca=Path("mine.pem")
    )


def test_the_files_token_is_not_sent_to_another_coordinator() -> None:
    file = SettingsSource(coordinator="farm:1", token="secret", tls_ca="ca.pem")
    assert token(settings(file=file)) == "secret"
    assert token(settings(SettingsSource(coordinator="farm:1"), file=file)) == "secret"
    elsewhere = settings(SettingsSource(coordinator="farm:2"), file=file)
    assert (elsewhere.token, elsewhere.tls) == (None, TlsFiles())


def test_precedence_of_token_sources(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("from-file\n")
    environment = {"REMY_FARM_TOKEN": "from-environment"}
    file = SettingsSource(token="from-configuration")
    assert token(settings(SettingsSource(token_file=str(path)), environment, file)) == "from-file"
    assert token(settings(None, environment, file)) == "from-environment"
    assert token(settings(None, {"REMY_FARM_TOKEN": ""}, file)) == "from-configuration"
    assert token(settings(None, {}, SettingsSource(token_file=str(path)))) == "from-file"


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (SettingsSource(insecure=True, tls_ca="ca.pem"), "exclude each other"),
        (SettingsSource(tls_cert="cert.pem"), "--tls-key is missing"),
        (SettingsSource(tls_key="key.pem"), "--tls-cert is missing"),
    ],
)
def test_contradictory_settings_are_refused(given: SettingsSource, word: str) -> None:
    with pytest.raises(SettingsError, match=word):
        settings(given)


@pytest.mark.parametrize("text", ["two words", "new\nline", "schlüssel", "nul\0", " "])
def test_an_invalid_token_is_refused_and_not_shown(text: str) -> None:
    file = SettingsSource(token=text)
    with pytest.raises(SettingsError, match=r"config\.yaml") as refusal:
        settings(file=file)
    assert text == " " or text not in str(refusal.value)


def test_a_missing_token_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"token file .*nowhere"):
        settings(SettingsSource(token_file=str(tmp_path / "nowhere")))


def test_tokens_are_not_in_representations() -> None:
    file = SettingsSource(token="secret-token")
    assert "secret-token" not in repr(settings(file=file))
    assert "secret-token" not in repr(file)
