/**
 * `--broken no-guard`: in place of `incumbent run`. It leads by the rules, but starts its program
 * by itself, behind no gate. It stops the program when it is told to, and nobody does when it
 * cannot.
 */
import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import { createElection } from 'incumbent';
import { openStore } from './no-guard-store.ts';

const end = process.argv.indexOf('--');
const { values } = parseArgs({
  args: process.argv.slice(3, end),
  options: {
    election: { type: 'string', short: 'e', default: '' },
    store: { type: 'string', default: '' },
    id: { type: 'string', default: '' },
    lease: { type: 'string', default: '' },
    json: { type: 'boolean' },
    'stop-timeout': { type: 'string', default: '' },
  },
});
const [program = '', ...args] = process.argv.slice(end + 1);
const { options, close } = await openStore(values.store, values.lease);
const election = createElection<unknown>({
  name: values.election,
  ...options,
  candidate: { id: values.id },
});
const report = (fields: object) => process.stderr.write(`${JSON.stringify(fields)}\n`);
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
report({ event: 'waiting' });
await election
  .lead(
    async (term) => {
      const token = term.token.toString();
      report({ event: 'leading', token });
      const child = spawn(program, args, {
        stdio: 'ignore',
        detached: true,
        env: { ...process.env, INCUMBENT_TOKEN: token, INCUMBENT_CANDIDATE: values.id },
      });
      const ended = new Promise((resolve) => child.once('exit', resolve));
      term.signal.addEventListener('abort', () => {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      });
      await ended;
      term.signal.throwIfAborted();
    },
    { signal: stop.signal },
  )
  .catch(() => {});
await election.close();
await close();
