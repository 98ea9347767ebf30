# The server: Python packages from the hash locks; the final image has no compiler and no root user.
ARG DEBIAN_IMAGE=debian:12-slim
FROM ${DEBIAN_IMAGE} AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-dev python3-pip gcc libc6-dev libcdd-dev
WORKDIR /build
COPY requirements/build.txt requirements/runtime.txt requirements/
# Wheels are built with the tools of the build lock, so no build downloads anything. pip resolves nothing; `check` fails if
# a lock lacks a dependency, and requirements/refresh.sh writes the locks again.
RUN python3 -m venv --without-pip tools \
    && python3 -m pip --python tools/bin/python install --no-compile --no-deps --require-hashes -r requirements/build.txt \
    && python3 -m pip --python tools/bin/python check \
    && python3 -m pip --python tools/bin/python wheel --no-build-isolation --no-deps --require-hashes -w wheels -r requirements/runtime.txt
COPY LICENSE LICENSE
COPY migrations migrations
COPY client_sdk/browser/src client_sdk/browser/src
COPY client_sdk/browser/page client_sdk/browser/page
COPY shared shared
COPY design design
COPY analyst analyst
COPY server server
RUN python3 -m pip --python tools/bin/python wheel --no-build-isolation --no-deps -w wheels ./server \
    && python3 -m venv --without-pip /opt/frankly \
    && python3 -m pip --python /opt/frankly/bin/python install --no-index --no-deps wheels/*.whl \
    && python3 -m pip --python /opt/frankly/bin/python check

FROM ${DEBIAN_IMAGE}
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 libcdd0d libgmp10 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/frankly --create-home --shell /usr/sbin/nologin frankly \
    && chmod 0700 /var/lib/frankly
COPY --from=build /opt/frankly /opt/frankly
ENV PATH=/opt/frankly/bin:/usr/bin:/bin \
    FRANKLY_HOME=/var/lib/frankly \
    FRANKLY_HOST=0.0.0.0 \
    FRANKLY_PORT=8000
USER frankly
WORKDIR /var/lib/frankly
VOLUME /var/lib/frankly
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
    CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health/ready', timeout=4)"]
CMD ["frankly", "serve", "--production"]
