#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Write the locks again. Keeps the versions that are in them; `requirements/refresh.sh --upgrade` takes the newest.
set -eu
cd "$(dirname "$0")/.."
own="--no-emit-package frankly-protocol --no-emit-package frankly-sdk --no-emit-package frankly-design --no-emit-package frankly-analyst --no-emit-package frankly-server"
for name in build runtime demo test full; do
    # Each larger set keeps the versions of the smaller one, so that installing one after the other changes nothing.
    case $name in
        demo) pins="-c requirements/runtime.txt" ;;
        test) pins="-c requirements/demo.txt" ;;
        full) pins="-c requirements/test.txt" ;;
        *) pins="" ;;
    esac
    # shellcheck disable=SC2086 # both lists are words
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
        $own $pins "$@" -o "requirements/$name.txt" "requirements/$name.in"
done
