// A program for the tests of `incumbent run --shards`. It logs each of its acts for a shard, with the
// token and the monotonic time that all processes share.
//
//   node shard-worker.cjs LOG [slow] [deaf]
//
// - slow: works for a shard a little longer after it was taken away, and acknowledges only then
// - deaf: never acknowledges anything but the first list, and works on
//
// Lines: `SHARD TOKEN PID MS`. With $INCUMBENT_SHARD it works for that shard, else for those of the file
// $INCUMBENT_SHARDS.
const { appendFileSync, openSync, readFileSync, writeSync } = require('node:fs');

const [log, ...flags] = process.argv.slice(2);
const { INCUMBENT_SHARD, INCUMBENT_TOKEN, INCUMBENT_SHARDS, INCUMBENT_SHARDS_ACK } = process.env;
const lingerMs = 1_000;
const fd = openSync(log, 'a');
/** By shard: its token. */
let owned = new Map();

function beat() {
  const [seconds, nanoseconds] = process.hrtime();
  for (const [shard, token] of owned) {
    writeSync(fd, `${shard} ${token} ${process.pid} ${seconds * 1e3 + nanoseconds / 1e6}\n`);
  }
}

function read() {
  const { version, shards } = JSON.parse(readFileSync(INCUMBENT_SHARDS, 'utf8'));
  const next = new Map(shards.map(({ shard, token }) => [shard, token]));
  for (const [shard, token] of next) owned.set(shard, token);
  const apply = () => {
    owned = next;
    beat();
    appendFileSync(INCUMBENT_SHARDS_ACK, `${version}\n`);
  };
  if (flags.includes('slow')) setTimeout(apply, lingerMs);
  else apply();
}

if (INCUMBENT_SHARD === undefined) {
  process.on('SIGHUP', () => {
    if (!flags.includes('deaf')) read();
  });
  read();
} else {
  owned.set(INCUMBENT_SHARD, INCUMBENT_TOKEN);
  // It goes on for a little while. Nobody may begin before it is gone.
  process.on('SIGTERM', () =>
    setTimeout(() => process.exit(0), flags.includes('slow') ? lingerMs : 0),
  );
}
setInterval(beat, 10);
