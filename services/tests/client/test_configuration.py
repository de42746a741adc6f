from pathlib import Path

import pytest

from remy_rpc.settings import SettingsError
from remy_services.client.settings import SettingsSource, configuration_path, read_configuration


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def test_location_of_the_configuration_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert configuration_path({}) == Path("/home/ann/.config/remy-farm/config.yaml")
    assert configuration_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/remy-farm/config.yaml")
    assert configuration_path({"REMY_FARM_CONFIG": "/y.yaml"}) == Path("/y.yaml")


def test_a_missing_file_is_empty_unless_required(path: Path) -> None:
    assert read_configuration(path) == SettingsSource()
    with pytest.raises(SettingsError, match="cannot be read"):
        read_configuration(path, required=True)


def test_paths_are_relative_to_the_file(path: Path) -> None:
    path.write_text("coordinator: farm:1\ntls_ca: ca.pem\ntls_cert: /etc/cert.pem\n")
    assert read_configuration(path) == SettingsSource(
        coordinator="farm:1", tls_ca=str(path.parent / "ca.pem"), tls_cert="/etc/cert.pem"
    )


def test_a_file_of_comments_is_empty(path: Path) -> None:
    path.write_text("# later\n")
    assert read_configuration(path) == SettingsSource()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("coordinater: farm:1\n", "'coordinater' is not a known key; known keys are coordinator,"),
        ("insecure: 1\n", "insecure must be true or false"),
        ("coordinator: [a]\n", "coordinator must be a non-empty string"),
        ("tls_ca: ''\n", "tls_ca must be a non-empty string"),
        ("- coordinator\n", "must be a mapping"),
        ("a: &b c\nd: *b\n", "alias"),
        (": :\n  - {", "is not YAML"),
    ],
)
def test_errors_name_the_file(path: Path, text: str, problem: str) -> None:
    path.write_text(text)
    with pytest.raises(SettingsError, match=problem) as refusal:
        read_configuration(path)
    assert str(path) in str(refusal.value)


def test_binary_files_are_refused(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="is not UTF-8 text"):
        read_configuration(path)


def test_a_token_readable_by_others_is_refused(path: Path) -> None:
    path.write_text("token: secret-token\n")
    path.chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600") as refusal:
        read_configuration(path)
    assert "secret-token" not in str(refusal.value)
    path.chmod(0o600)
    assert read_configuration(path).token == "secret-token"
