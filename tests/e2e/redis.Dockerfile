# Redis of Debian's own package, where the official image cannot be pulled.
ARG BASE=docker.io/library/debian:bookworm-slim
FROM ${BASE}
RUN apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        redis-server redis-tools >/dev/null \
    && rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log
USER 999:999
WORKDIR /data
ENTRYPOINT ["redis-server"]
