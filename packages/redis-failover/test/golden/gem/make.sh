#!/bin/bash
# Makes the golden texts anew with what the Ruby gem redis_failover writes them with: MultiJson (Debian:
# ruby, ruby-multi-json, ruby-oj, ruby-yajl). The gem takes whichever JSON library it finds, so each is
# asked, and they must agree.
set -euo pipefail
cd "$(dirname "$0")"
for adapter in json_gem ok_json oj yajl; do
  mkdir -p "made-by-$adapter"
  ruby write.rb "$adapter" "made-by-$adapter"
done
for adapter in ok_json oj yajl; do
  diff -r made-by-json_gem "made-by-$adapter"
  rm -r "made-by-$adapter"
done
mv made-by-json_gem/* .
rmdir made-by-json_gem
