// The reports of a run: events for programs and people, and --listen.
import { closeSync, openSync, readFileSync, renameSync, statfsSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { expect } from 'vitest';
import type { RunProcess } from './support/run-process.ts';
import { living, test, until } from './support/run-process.ts';

/** A store in memory begins anew with every boot, and a run says so. */
const isInMemory = statfsSync(tmpdir()).type === 0x0102_1994;

// --- events ---

test.concurrent('--json: every line on stderr is an event, in the order of things', async ({
  lab,
}) => {
  const run = lab.run('A', ['sh', '-c', 'exit 3']);
  await run.ends();
  expect(run.otherLines).toEqual([]);
  expect(run.events.map(({ event }) => event)).toEqual([
    'store',
    ...(isInMemory ? ['warning'] : []),
    'waiting',
    'leading',
    'started',
    'exited',
    'ended',
  ]);
  const times = run.events.map(({ time }) => Date.parse(String(time)));
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  for (const event of run.events) expect(event).toMatchObject({ election: 'work', candidate: 'A' });
  expect(run.events[0]).toMatchObject({ store: `file:${lab.store}` });
  expect(run.events.at(-3)).toMatchObject({ token: '1', pid: expect.any(Number) });
  expect(run.events.at(-2)).toMatchObject({ code: 3, signal: null, because: 'itself' });
  expect(run.stdout).toBe('');
});

test.concurrent('for people: sentences, and nothing that a name could do to a terminal', async ({
  lab,
}) => {
  const options = ['--metadata', 'role=\u001b[31mred'];
  const run = lab.run('A\u202e', ['sh', '-c', 'kill -HUP $$'], { options, json: false });
  expect(await run.ends()).toEqual({ code: 129, signal: null });
  expect(run.stderr.split('\n')).toEqual([
    `incumbent: election work on file:${lab.store}`,
    ...(isInMemory ? [expect.stringContaining('tmpfs is empty after every boot')] : []),
    'incumbent: leading (token 1)',
    expect.stringMatching(/^incumbent: started sh \(pid \d+\)$/),
    'incumbent: the program ended (SIGHUP)',
    'incumbent: term 1 ended: work-finished',
    '',
  ]);
});

test.concurrent('--events-fd: events go there and nowhere else, to the last one', async ({
  lab,
}) => {
  const stdio = ['ignore', 'pipe', 'pipe', 'pipe'] as const;
  const options = ['--events-fd', '3'];
  const run = lab.run('A', ['sh', '-c', 'echo out; echo err >&2'], { options, stdio: [...stdio] });
  await run.ends();
  expect(run.events.at(-1)).toMatchObject({ event: 'ended', released: true });
  expect(run.stdout).toBe('out\n');
  expect(run.stderr).toBe('err\n');

  const file = lab.path('events');
  const fd = openSync(file, 'w');
  const other = lab.run('B', ['true'], { options, stdio: ['ignore', 'pipe', 'pipe', fd] });
  closeSync(fd);
  await other.ends();
  const names = readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).event);
  expect(names.at(0)).toBe('store');
  expect(names.at(-1)).toBe('ended');
});

test.concurrent('--events-fd: the program does not inherit it', async ({ lab }) => {
  const program = [
    'sh',
    '-c',
    'if { true >&3; } 2>/dev/null; then echo open; else echo closed; fi',
  ];
  const stdio = ['ignore', 'pipe', 'pipe', 'pipe'] as const;
  const run = lab.run('A', program, { options: ['--events-fd', '3'], stdio: [...stdio] });
  expect(await run.ends()).toEqual({ code: 0, signal: null });
  expect(run.stdout).toBe('closed\n');
});

test.concurrent.for([2, 3])(
  'nobody reads the events on descriptor %i any more, and the run goes on',
  async (fd, { lab }) => {
    const program = ['sh', '-c', 'until test -e go; do sleep 0.02; done; exit 5'];
    const run = lab.run('A', program, {
      options: ['--events-fd', String(fd)],
      stdio: ['ignore', 'pipe', 'pipe', ...(fd === 3 ? (['pipe'] as const) : [])],
    });
    await run.started();
    run.child.stdio[fd]!.destroy();
    lab.write('go', '');
    expect(await run.ends()).toEqual({ code: 5, signal: null });
    expect(lab.record()).toMatchObject({ history: [{ id: 'A', why: 'work-finished' }] });
  },
);

// --- listen ---

async function listening(run: RunProcess): Promise<string> {
  return String((await run.event('listening'))['url']);
}

async function ask(url: string, path: string, method = 'GET'): Promise<[number, string]> {
  const response = await fetch(`${url}${path}`, { method });
  return [response.status, (await response.text()).trim()];
}

async function status(url: string): Promise<Record<string, unknown>> {
  const [code, text] = await ask(url, '/status');
  expect(code).toBe(200);
  return JSON.parse(text) as Record<string, unknown>;
}

/** Values by name and labels, as Prometheus gets them. */
async function metrics(url: string): Promise<Record<string, number>> {
  const response = await fetch(`${url}/metrics`);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const lines = (await response.text()).split('\n').filter((line) => /^[a-z]/.test(line));
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

const local = ['--listen', '127.0.0.1:0'];

test.concurrent('--listen: /healthz, /leader, /status and /metrics while waiting, leading, stopping and after', async ({
  lab,
}) => {
  const first = lab.run('FIRST', lab.worker());
  await first.started();
  const a = lab.run('A', lab.worker('leader', `linger=${lab.path('go')}`), { options: local });
  const url = await listening(a);
  await a.event('waiting');
  expect(await ask(url, '/healthz')).toEqual([200, 'ok']);
  expect(await ask(url, '/leader')).toEqual([503, 'not leading']);
  expect(await metrics(url)).toMatchObject({
    'incumbent_leading{election="work"}': 0,
    'incumbent_candidates_waiting{election="work"}': 1,
  });
  expect(await status(url)).toMatchObject({
    election: 'work',
    candidate: 'A',
    leading: false,
    healthy: true,
    state: 'waiting',
    token: null,
    since: null,
    program: null,
  });

  first.kill('SIGTERM');
  const { pid, token } = await a.started();
  await lab.works(token);
  expect(await ask(url, '/healthz')).toEqual([200, 'ok']);
  expect(await ask(url, '/leader')).toEqual([200, 'leading']);
  expect(await ask(url, '/leader', 'HEAD')).toEqual([200, '']);
  expect(await metrics(url)).toMatchObject({
    'incumbent_leading{election="work"}': 1,
    'incumbent_ready{election="work"}': 1,
    'incumbent_token{election="work"}': Number(token),
    'incumbent_term_starts_total{election="work"}': 1,
  });
  expect(await status(url)).toMatchObject({
    leading: true,
    healthy: true,
    state: 'leading',
    token: String(token),
    since: expect.stringMatching(/^\d{4}-.*Z$/),
    remainingMs: expect.any(Number),
    program: pid,
  });

  // A balancer sends no new work to a leader that is about to go.
  expect(await lab.cli('vacate', '-e', 'work')).toMatchObject({ code: 0 });
  await lab.works(token, 'SIGTERM');
  expect(await ask(url, '/leader')).toEqual([503, 'not leading']);
  expect(await ask(url, '/healthz')).toEqual([200, 'ok']);
  expect(await status(url)).toMatchObject({ state: 'stopping', leading: false, program: pid });

  expect(await lab.cli('drain', '-e', 'work', '--id', 'A', '--until', '1h')).toMatchObject({
    code: 0,
  });
  lab.write('go', '');
  await a.event('ended');
  expect(await ask(url, '/leader')).toEqual([503, 'not leading']);
  expect(await status(url)).toMatchObject({ state: 'waiting', token: null, program: null });
  expect(await metrics(url)).toMatchObject({
    'incumbent_token{election="work"}': 0,
    'incumbent_term_ends_total{election="work",reason="vacated"}': 1,
    'incumbent_handover_duration_seconds_count{election="work"}': 1,
  });

  expect(await ask(url, '/else')).toEqual([404, expect.stringContaining('/healthz')]);
  expect(await ask(url, '/leader', 'POST')).toEqual([405, 'only GET']);
});

test.concurrent('--listen: a term that cannot be renewed is not healthy, and neither is it led once it is over', async ({
  lab,
}) => {
  const a = lab.run('A', lab.worker('leader', 'deaf'), { lease: '15s', options: local });
  const url = await listening(a);
  const { pid: group, token } = await a.started();
  await lab.works(token);
  renameSync(lab.store, lab.path('away'));
  await a.event('unconfirmed');
  expect(await ask(url, '/healthz')).toEqual([503, 'term not confirmed']);
  expect(await ask(url, '/leader')).toEqual([200, 'leading']);
  await until('nothing is held any more', async () => {
    const [healthz] = await ask(url, '/healthz');
    if (healthz === 200) expect(living(group)).toEqual([]);
    return healthz === 200;
  });
  expect(await ask(url, '/leader')).toEqual([503, 'not leading']);
  await a.event('exited');
});

test.concurrent('--listen on a port in use: 64, why, and nothing is campaigned for', async ({
  lab,
}) => {
  const server = createServer().listen(0, '127.0.0.1');
  await until('somebody listens', () => server.listening);
  const { port } = server.address() as AddressInfo;
  const options = ['--listen', `127.0.0.1:${port}`];
  const run = lab.run('A', lab.worker(), { options, json: false });
  expect(await run.ends()).toEqual({ code: 64, signal: null });
  server.close();
  expect(run.stderr).toContain(`--listen 127.0.0.1:${port}: somebody listens there already`);
  expect(run.stderr).not.toContain('waiting');
  expect(lab.stamps()).toEqual([]);
  expect(lab.survivors()).toEqual([]);
});
