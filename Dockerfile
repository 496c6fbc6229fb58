# The daemon's image: the wheel and its locked dependencies; git, ssh and gpg for the repository and its signatures; nothing else.
# A tag may lead to another image tomorrow. So a release names its base with the digest that was tested:
#   docker build --build-arg RELEASE=1 --build-arg BASE=python:3.13-slim@sha256:DIGEST .
ARG BASE=python:3.13-slim
FROM ${BASE} AS build
ARG BASE
ARG RELEASE=
RUN if [ -n "$RELEASE" ] && ! printf %s "$BASE" | grep -Eq '@sha256:[0-9a-f]{64}$'; then echo "a release needs its base by digest: --build-arg BASE=IMAGE@sha256:DIGEST, not $BASE" >&2; exit 1; fi
RUN apt-get update \
 && apt-get install --yes --no-install-recommends binutils git openssh-client gpg ca-certificates \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY requirements.lock ./
COPY config/image/requirements.lock tools.lock
RUN python -m venv /opt/headroom \
 && /opt/headroom/bin/pip install --no-cache-dir --no-compile --require-hashes -r requirements.lock \
 && python -m venv /opt/tools \
 && /opt/tools/bin/pip install --no-cache-dir --require-hashes -r tools.lock
COPY pyproject.toml README.md LICENSE ./
COPY reconciler reconciler
COPY templates templates
COPY config config
COPY examples-repo examples-repo
# The placement's loops are compiled here, for any processor of the architecture, so that no daemon compiles them while a large
# placement waits. numba knows them again by the place of their source and its time, which layers keep in whole seconds only.
ENV NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=/opt/headroom-compiled
RUN /opt/headroom/bin/pip install --no-cache-dir --no-compile --no-deps --no-build-isolation . \
 && find /opt/headroom -name '*.py' -path '*/reconciler/placement/*' -exec touch --date=2026-01-01T00:00:00Z {} + \
 && (cd / && /opt/headroom/bin/python -m reconciler.placement.precompile) \
 && python config/image/root_file_system.py /opt/headroom /root-file-system \
 && mkdir -p /own/home/headroom /own/var/lib/headroom /own/opt && mv /opt/headroom-compiled /own/opt

# docker build --target sbom --output type=local,dest=. .
FROM scratch AS sbom
COPY --from=build /root-file-system/usr/share/sbom/headroom.cdx.json /

FROM scratch
COPY --from=build /root-file-system /
COPY --from=build --chown=65532:65532 /own /
ENV PATH=/opt/headroom/bin:/usr/bin HOME=/home/headroom PYTHONUNBUFFERED=1 NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR=/opt/headroom-compiled
USER 65532
EXPOSE 8080
ENTRYPOINT ["headroom"]
CMD ["run"]
