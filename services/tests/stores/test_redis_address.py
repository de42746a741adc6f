"""Tests parse_address: URLs of Redis servers."""

import pytest

from remy_services.stores.contract import StoreError
from remy_services.stores.redis.connection import RedisAddress, RedisTls, parse_address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://farm", RedisAddress("redis://farm", hosts=(("farm", 6379),))),
        (
            "redis://me@10.0.0.1:7000/3?replicas=2",
            RedisAddress(
                "redis://10.0.0.1:7000/3",
                hosts=(("10.0.0.1", 7000),),
                user="me",
                database=3,
                replicas=2,
            ),
        ),
        ("redis://[::1]:1", RedisAddress("redis://[::1]:1", hosts=(("::1", 1),))),
        (
            "rediss://farm/",
            RedisAddress("rediss://farm/", hosts=(("farm", 6379),), tls=RedisTls()),
        ),
        (
            "rediss://farm?tls_ca=/etc/ca.pem&tls_cert=c.pem&tls_key=k.pem",
            RedisAddress(
                "rediss://farm",
                hosts=(("farm", 6379),),
                tls=RedisTls("/etc/ca.pem", "c.pem", "k.pem"),
            ),
        ),
        (
            "unix:///run/a%20b.sock?database=1",
            RedisAddress("unix:///run/a%20b.sock", socket="/run/a b.sock", database=1),
        ),
        (
            "unix://m%40e@/run/s",
            RedisAddress("unix:///run/s", socket="/run/s", user="m@e"),
        ),
        (
            "redis+sentinel://a,b:7,[::2]:8/farm/1?sentinel_password=yes&replicas=1",
            RedisAddress(
                "redis+sentinel://a,b:7,[::2]:8/farm/1",
                hosts=(("a", 26379), ("b", 7), ("::2", 8)),
                service="farm",
                sentinel_password=True,
                database=1,
                replicas=1,
            ),
        ),
        (
            "rediss+sentinel://a/farm?tls_ca=ca.pem",
            RedisAddress(
                "rediss+sentinel://a/farm",
                hosts=(("a", 26379),),
                service="farm",
                tls=RedisTls("ca.pem"),
            ),
        ),
    ],
)
def test_valid_urls_are_parsed(url: str, address: RedisAddress) -> None:
    assert parse_address(url) == address


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://", "redis:// has no host; use the form redis://HOST:PORT"),
        ("redis://farm:port", "farm:port in redis://farm:port is not a host"),
        ("redis://farm:70000", "farm:70000 in redis://farm:70000 is not a host"),
        ("redis://a,b", "redis://a,b does not name exactly one server"),
        ("redis://farm/0/1", "does not name exactly one server"),
        ("redis://farm/jobs", "has database 'jobs'; a Redis database is a number"),
        ("redis://farm?replicas=two", "replicas of redis://farm is two; it must be a number"),
        (
            "redis://farm?retry_on_timeout=1",
            "redis://farm has an unknown option retry_on_timeout; known options are replicas",
        ),
        ("redis://farm?tls_ca=x", "unknown option tls_ca"),
        ("redis://farm?replicas", "the options of redis://farm must have the form NAME=VALUE"),
        ("redis://[::1", "[::1 in redis://[::1 is not a host"),
        ("rediss://farm?tls_key=k", "rediss://farm has only one of tls_cert and tls_key; set both"),
        ("unix://run/redis.sock", "has no socket path; use a form such as unix:///run/redis.sock"),
        ("unix://", "has no socket path"),
        ("redis+sentinel://a:1", "has no Sentinel service name"),
        ("rediss+sentinel://a:1", "use the form rediss+sentinel://HOST:PORT,HOST:PORT/SERVICE"),
        ("redis+sentinel://a/s?tls_ca=x", "unknown option tls_ca"),
        ("redis+sentinel://a/s?sentinel_password=on", "is on; it must be yes or no"),
    ],
)
def test_invalid_urls_are_refused(url: str, message: str) -> None:
    with pytest.raises(StoreError) as raised:
        parse_address(url)

    assert message in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:hush@farm",
        "redis://me:hush@farm:1/0",
        "rediss://me:hush@",
        "unix://:hush@/run/s",
        "redis+sentinel://me:hush@a,b/s",
    ],
)
def test_passwords_in_urls_are_refused(url: str) -> None:
    with pytest.raises(StoreError, match="contains a password") as raised:
        parse_address(url)

    assert "hush" not in str(raised.value)
