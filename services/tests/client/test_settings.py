from pathlib import Path
from typing import Any

import pytest

from remy_rpc.settings import Address, SettingsError, TlsFiles
from remy_services.client.settings import ConnectionSettings, Given, settings_of


def settings(
    given: Given | None = None, environment: dict[str, str] | None = None, file: Given | None = None
) -> ConnectionSettings:
    return settings_of(
        given or Given(), environment or {}, file or Given(), file_name="config.yaml"
    )


def token(found: ConnectionSettings) -> str | None:
    return None if found.token is None else found.token.text


def test_without_anything_a_coordinator_on_this_machine_is_meant() -> None:
    assert settings() == ConnectionSettings(Address("127.0.0.1", 50051), None, None)


def test_outside_of_this_machine_tls_is_the_default() -> None:
    assert settings(Given(coordinator="farm.example.org")).tls == TlsFiles()
    assert settings(Given(coordinator="farm.example.org", insecure=True)).tls is None


@pytest.mark.parametrize("name", ["tls_ca", "tls_server_name"])
def test_tls_on_this_machine_is_asked_for_by_any_of_its_flags(name: str) -> None:
    values: dict[str, Any] = {name: "x"}
    assert settings(Given(**values)).tls is not None


def test_flags_come_before_the_file() -> None:
    file = Given(coordinator="farm:1", tls_ca="theirs.pem", tls_server_name="farm.internal")
    assert settings(file=file).tls == TlsFiles(ca=Path("theirs.pem"), server_name="farm.internal")
    found = settings(Given(tls_ca="mine.pem"), file=file)
    assert found.address == Address("farm", 1)
    assert found.tls == TlsFiles(ca=Path("mine.pem"), server_name="farm.internal")
    assert settings(Given(insecure=True), file=file).tls is None


def test_tls_flags_come_before_an_insecure_file() -> None:
    file = Given(coordinator="farm:1", insecure=True)
    assert settings(Given(tls_ca="mine.pem"), file=file).tls == TlsFiles(ca=Path("mine.pem"))


def test_the_files_token_goes_to_no_other_coordinator() -> None:
    file = Given(coordinator="farm:1", token="secret", tls_ca="ca.pem")
    assert token(settings(file=file)) == "secret"
    assert token(settings(Given(coordinator="farm:1"), file=file)) == "secret"
    elsewhere = settings(Given(coordinator="farm:2"), file=file)
    assert (elsewhere.token, elsewhere.tls) == (None, TlsFiles())


def test_a_token_file_comes_before_the_environment_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("from-file\n")
    environment = {"REMY_FARM_TOKEN": "from-environment"}
    file = Given(token="from-configuration")
    assert token(settings(Given(token_file=str(path)), environment, file)) == "from-file"
    assert token(settings(None, environment, file)) == "from-environment"
    assert token(settings(None, {"REMY_FARM_TOKEN": ""}, file)) == "from-configuration"
    assert token(settings(None, {}, Given(token_file=str(path)))) == "from-file"


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (Given(insecure=True, tls_ca="ca.pem"), "exclude each other"),
        (Given(tls_cert="cert.pem"), "--tls-key is missing"),
        (Given(tls_key="key.pem"), "--tls-cert is missing"),
    ],
)
def test_contradictions_are_refused(given: Given, word: str) -> None:
    with pytest.raises(SettingsError, match=word):
        settings(given)


@pytest.mark.parametrize("text", ["two words", "new\nline", "schlüssel", "nul\0", " "])
def test_a_bad_token_is_refused_and_not_shown(text: str) -> None:
    file = Given(token=text)
    with pytest.raises(SettingsError, match=r"config\.yaml") as refusal:
        settings(file=file)
    assert text == " " or text not in str(refusal.value)


def test_a_token_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"token file .*nowhere"):
        settings(Given(token_file=str(tmp_path / "nowhere")))


def test_a_token_is_never_part_of_what_is_printed() -> None:
    file = Given(token="secret-token")
    assert "secret-token" not in repr(settings(file=file))
    assert "secret-token" not in repr(file)
