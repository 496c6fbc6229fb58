# The daemon's image: the wheel and its locked dependencies; git, ssh and gpg for the repository and its signatures; nothing else.
# A tag may lead to another image tomorrow. So a release names its base with the digest that was tested:
#   docker build --build-arg RELEASE=1 --build-arg BASE=python:3.13-slim@sha256:DIGEST .
ARG BASE=python:3.13-slim
FROM ${BASE} AS build
ARG BASE
ARG RELEASE=
RUN if [ -n "$RELEASE" ] && ! printf %s "$BASE" | grep -Eq '@sha256:[0-9a-f]{64}$'; then echo "a release needs its base by digest: --build-arg BASE=IMAGE@sha256:DIGEST, not $BASE" >&2; exit 1; fi
WORKDIR /src
COPY requirements.lock pyproject.toml README.md LICENSE ./
COPY reconciler reconciler
COPY templates templates
COPY config config
COPY examples-repo examples-repo
RUN python -m venv /opt/headroom \
 && /opt/headroom/bin/pip install --no-cache-dir --require-hashes -r requirements.lock \
 && /opt/headroom/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${BASE}
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git openssh-client gpg ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 65532 --create-home headroom
COPY --from=build /opt/headroom /opt/headroom
# The placement's loops are compiled here, for any processor of the architecture, so that no daemon compiles them while a large
# placement waits. numba knows them again by the time of their source, which layers keep in whole seconds only.
ENV PATH=/opt/headroom/bin:$PATH PYTHONUNBUFFERED=1 NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=/opt/headroom-compiled
RUN find /opt/headroom -name '*.py' -path '*/reconciler/placement/*' -exec touch --date=2026-01-01T00:00:00Z {} + \
 && python -m reconciler.placement.precompile \
 && chown -R headroom /opt/headroom-compiled
USER 65532
EXPOSE 8080
ENTRYPOINT ["headroom"]
CMD ["run"]
