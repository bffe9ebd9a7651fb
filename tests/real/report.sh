#!/usr/bin/env bash
# Runs tests/real/report.mjs: the report page of `heartline load` in a real browser, without a network.
# `bash tests/real/report.sh HEARTLINE`, with a built `heartline`. Installs what is missing: Debian's chromium and nodejs,
# npm's playwright-core (which drives the browser and brings none).
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly HEARTLINE=${1:?usage: bash tests/real/report.sh HEARTLINE}
readonly PLAYWRIGHT=1.64.1
readonly OUT=target/ci/page

missing=()
command -v chromium >/dev/null || missing+=(chromium fonts-liberation)
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
if [ ${#missing[@]} -gt 0 ]; then
    as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
if [ ! -d "$OUT/node_modules/playwright-core" ]; then
    npm install --prefix "$OUT" --no-save --no-audit --no-fund --silent "playwright-core@$PLAYWRIGHT"
fi
NODE_PATH="$OUT/node_modules" timeout 240 node tests/real/report.mjs "$HEARTLINE" "$OUT/report"
