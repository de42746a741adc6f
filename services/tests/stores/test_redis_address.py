"""URLs of Redis servers."""

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
def test_what_a_url_says(url: str, address: RedisAddress) -> None:
    assert parse_address(url) == address


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://", "redis:// names no host; redis://HOST:PORT would"),
        ("redis://farm:port", "farm:port in redis://farm:port is not a host"),
        ("redis://farm:70000", "farm:70000 in redis://farm:70000 is not a host"),
        ("redis://a,b", "redis://a,b does not name one server"),
        ("redis://farm/0/1", "does not name one server"),
        ("redis://farm/jobs", "names database jobs; databases of Redis are numbers"),
        ("redis://farm?replicas=two", "replicas of redis://farm is two; a number is needed"),
        ("redis://farm?retry_on_timeout=1", "redis://farm has no option retry_on_timeout; it has"),
        ("redis://farm?tls_ca=x", "no option tls_ca"),
        ("redis://farm?replicas", "the options of redis://farm are not of the form NAME=VALUE"),
        ("redis://[::1", "[::1 in redis://[::1 is not a host"),
        ("rediss://farm?tls_key=k", "rediss://farm has one of tls_cert and tls_key; both"),
        ("unix://run/redis.sock", "does not name a socket; unix:///run/redis.sock would"),
        ("unix://", "does not name a socket"),
        ("redis+sentinel://a:1", "does not name the service that its Sentinels watch"),
        ("rediss+sentinel://a:1", "watch; rediss+sentinel://HOST:PORT,HOST:PORT/SERVICE would"),
        ("redis+sentinel://a/s?tls_ca=x", "no option tls_ca"),
        ("redis+sentinel://a/s?sentinel_password=on", "is on; yes or no is needed"),
    ],
)
def test_what_a_url_may_not_say(url: str, message: str) -> None:
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
def test_a_password_has_no_place_in_a_url(url: str) -> None:
    with pytest.raises(StoreError, match="holds a password") as raised:
        parse_address(url)

    assert "hush" not in str(raised.value)
