/** For a process that its starter has left: to be imported before all else. */
import { Writable } from 'node:stream';

// A manager of services that sees the supervisor die sends TERM to all that it has left.
for (const name of ['SIGHUP', 'SIGINT', 'SIGTERM']) process.on(name, () => {});
// Others write to the same pipe: Node makes it non-blocking when process.stderr is looked at, as
// clients of stores do.
Object.defineProperty(process, 'stderr', {
  value: new Writable({ write: (_chunk, _encoding, done) => done() }),
});
