from pathlib import Path

import pytest

from remy_rpc.settings import SettingsError
from remy_services.client.settings import Given, configuration_path, read_configuration


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert configuration_path({}) == Path("/home/ann/.config/remy-farm/config.yaml")
    assert configuration_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/remy-farm/config.yaml")
    assert configuration_path({"REMY_FARM_CONFIG": "/y.yaml"}) == Path("/y.yaml")


def test_no_file_says_nothing(path: Path) -> None:
    assert read_configuration(path) == Given()
    with pytest.raises(SettingsError, match="cannot be read"):
        read_configuration(path, required=True)


def test_paths_are_beside_the_file(path: Path) -> None:
    path.write_text("coordinator: farm:1\ntls_ca: ca.pem\ntls_cert: /etc/cert.pem\n")
    assert read_configuration(path) == Given(
        coordinator="farm:1", tls_ca=str(path.parent / "ca.pem"), tls_cert="/etc/cert.pem"
    )


def test_an_empty_file_says_nothing(path: Path) -> None:
    path.write_text("# later\n")
    assert read_configuration(path) == Given()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("coordinater: farm:1\n", "'coordinater' is not a known key; known are coordinator,"),
        ("insecure: 1\n", "insecure must be true or false"),
        ("coordinator: [a]\n", "coordinator must be a text"),
        ("tls_ca: ''\n", "tls_ca must be a text"),
        ("- coordinator\n", "must be a mapping"),
        ("a: &b c\nd: *b\n", "alias"),
        (": :\n  - {", "is not YAML"),
    ],
)
def test_what_is_wrong_is_said_with_the_files_name(path: Path, text: str, problem: str) -> None:
    path.write_text(text)
    with pytest.raises(SettingsError, match=problem) as refusal:
        read_configuration(path)
    assert str(path) in str(refusal.value)


def test_what_is_not_text_is_refused(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="is not UTF-8 text"):
        read_configuration(path)


def test_a_token_must_be_the_users_own(path: Path) -> None:
    path.write_text("token: secret-token\n")
    path.chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600") as refusal:
        read_configuration(path)
    assert "secret-token" not in str(refusal.value)
    path.chmod(0o600)
    assert read_configuration(path).token == "secret-token"
