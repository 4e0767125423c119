#!/bin/bash
# Makes the golden bytes anew by protoc (Debian: protobuf-compiler and libprotobuf-dev), which is another
# implementation than the one under test: `*.hex` of each `*.textproto`, and what programs with the
# published schema see in those of ours.
set -euo pipefail
cd "$(dirname "$0")"
schemas=../../../src/backends/gcs

encode() { # message schema-directory schema name
  protoc "--encode=$1" "-I$2" -I/usr/include "$2/$3" < "$4.textproto" | xxd -p > "$4.hex"
}

for name in go-first go-renewed go-binary; do
  encode leaderelection.storagepb.RaceEntry . published.proto "$name"
done
encode leaderelection.storagepb.RaceEntry . published-older.proto go-older
for name in ours-held ours-vacant; do
  encode incumbent.gcs.RaceEntry "$schemas" race-entry.proto "$name"
  for schema in published published-older; do
    xxd -r -p "$name.hex" |
      protoc --decode=leaderelection.storagepb.RaceEntry -I. -I/usr/include "$schema.proto" |
      sed '/^1000: /d' > "$name.by-$schema.txt"
  done
done
