# The bot alone: no embedded database and no bundled model, so OMOIDE_MONGO__URI and a model's address or key
# have to be given. docker-compose.yaml brings MongoDB beside it.

FROM python:3.12-slim AS build
WORKDIR /build
RUN python -m venv /opt/omoide
COPY requirements/base.lock requirements/base.lock
RUN /opt/omoide/bin/pip install --no-cache-dir --no-deps --require-hashes --only-binary :all: \
    -r requirements/base.lock
COPY pyproject.toml README.md LICENSE ./
COPY memory memory
COPY bot bot
# No download here: what builds it is among the hashed packages above.
RUN /opt/omoide/bin/pip wheel --no-deps --no-build-isolation --no-index --wheel-dir wheel . \
    && /opt/omoide/bin/pip install --no-deps --no-index wheel/*.whl \
    && /opt/omoide/bin/pip uninstall --yes pip

FROM python:3.12-slim
RUN groupadd --system --gid 10001 omoide \
    && useradd --system --uid 10001 --gid omoide --home-dir /data --no-create-home --shell /usr/sbin/nologin omoide \
    && install --directory --owner=omoide --group=omoide --mode=0700 /data /backups
COPY --from=build /opt/omoide /opt/omoide
ENV PATH=/opt/omoide/bin:$PATH \
    HOME=/data \
    OMOIDE_DATA_DIR=/data \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /data
USER 10001:10001
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5m --timeout=30s --start-period=1m --retries=3 CMD ["omoide", "doctor", "--quick"]
ENTRYPOINT ["omoide"]
CMD ["run"]
