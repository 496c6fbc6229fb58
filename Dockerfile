# The daemon's image: the wheel and its locked dependencies, git and ssh for the repository, nothing else.
FROM python:3.13-slim AS build
WORKDIR /src
COPY requirements.lock pyproject.toml README.md LICENSE ./
COPY reconciler reconciler
COPY templates templates
COPY config config
COPY examples-repo examples-repo
RUN python -m venv /opt/headroom \
 && /opt/headroom/bin/pip install --no-cache-dir --require-hashes -r requirements.lock \
 && /opt/headroom/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.13-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git openssh-client ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 65532 --create-home headroom
COPY --from=build /opt/headroom /opt/headroom
ENV PATH=/opt/headroom/bin:$PATH PYTHONUNBUFFERED=1
USER 65532
EXPOSE 8080
ENTRYPOINT ["headroom"]
CMD ["run"]
