/**
 * --ready-when and --notify: when others may send requests to the program of a run. `READINESS=full`
 * sends 1,000 requests during 20 hand-overs, to programs that take 0.3 to 2 s to prepare.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freePorts } from '@incumbent/zookeeper-testing';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { toLeader } from 'incumbent/http';
import { Agent, request } from 'undici';
import { expect } from 'vitest';
import type { Lab, RunProcess } from './support/run-process.ts';
import { checkOneAtATime, test, until } from './support/run-process.ts';

/** A program that works until it is told to stop, once it has done `first`. */
function program(first: string): string[] {
  return ['sh', '-c', `${first}; exec sleep 1000`];
}

async function isReady(lab: Lab): Promise<unknown> {
  const { stdout } = await lab.cli('status', '-e', 'work', '--json');
  return (JSON.parse(stdout) as { ready: unknown }).ready;
}

async function leaderPath(run: RunProcess): Promise<[number, string]> {
  const { url } = await run.event('listening');
  const answer = await fetch(`${String(url)}/leader`);
  return [answer.status, (await answer.text()).trim()];
}

test.concurrent('--ready-when: the program is ready once the command ends with 0', async ({
  lab,
}) => {
  const file = lab.path('can-serve');
  const a = lab.run('A', lab.worker(), {
    options: [
      '--ready-when',
      `test -e ${file}`,
      '--ready-every',
      '50ms',
      '--listen',
      '127.0.0.1:0',
    ],
  });
  await lab.works((await a.started()).token);
  expect(await isReady(lab)).toBe(false);
  expect(await leaderPath(a)).toEqual([503, 'leading, not ready']);
  expect(await lab.cli('leader', '-e', 'work', '--ready', '--wait', '10ms')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('"A" of election "work" was not ready within 10ms'),
  });
  const waiting = lab.cli('leader', '-e', 'work', '--ready', '--id');
  lab.write('can-serve', '');
  await a.event('ready');
  expect(await isReady(lab)).toBe(true);
  expect(await leaderPath(a)).toEqual([200, 'leading']);
  expect(await waiting).toMatchObject({ code: 0, stdout: 'A\n' });
  expect(a.all('ready')).toHaveLength(1);
});

test.concurrent('--ready-when: a command that hangs is killed and asked again', async ({ lab }) => {
  const [file, asked] = [lab.path('can-serve'), lab.path('asked')];
  const command = `echo >> ${asked}; test -e ${file} || exec sleep 1000`;
  const a = lab.run('A', lab.worker(), {
    options: ['--ready-when', command, '--ready-every', '50ms'],
  });
  await a.started();
  await until('it was asked three times', () => {
    return existsSync(asked) && readFileSync(asked, 'utf8').length >= 3;
  });
  expect(a.all('ready')).toEqual([]);
  lab.write('can-serve', '');
  await a.event('ready');
});

test.concurrent('--notify: the program says it by a named pipe, one for each term', async ({
  lab,
}) => {
  const file = lab.path('can-serve');
  const path = lab.path('pipe');
  const says = program(
    `echo "$INCUMBENT_NOTIFY" > ${path}; echo STATUS=loading > "$INCUMBENT_NOTIFY"; ` +
      `until test -e ${file}; do sleep 0.02; done; echo READY=1 > "$INCUMBENT_NOTIFY"`,
  );
  const a = lab.run('A', says, { options: ['--notify'] });
  await a.started();
  expect(await isReady(lab)).toBe(false);
  expect(a.all('ready')).toEqual([]);
  lab.write('can-serve', '');
  await a.event('ready');
  expect(await isReady(lab)).toBe(true);
  const pipe = readFileSync(path, 'utf8').trim();
  expect(existsSync(pipe)).toBe(true);
  a.kill('SIGTERM');
  await a.ends();
  expect(existsSync(dirname(pipe))).toBe(false);
});

test.concurrent('--ready-timeout: who is not ready in time gives way', async ({ lab }) => {
  const never = ['--ready-when', 'false', '--ready-every', '50ms', '--ready-timeout', '300ms'];
  const a = lab.run('A', lab.worker(), { options: never });
  await a.started();
  const b = lab.run('B', lab.worker(), { options: ['--ready-when', 'true'] });
  expect(await a.event('ended')).toMatchObject({ reason: 'not-ready', released: true });
  const { token } = await b.started();
  await b.event('ready');
  await lab.works(token);
  expect(await isReady(lab)).toBe(true);
  checkOneAtATime(lab.stamps());
});

test.concurrent('--ready-timeout: the log says what was heard before', async ({ lab }) => {
  const a = lab.run('A', lab.worker(), {
    options: ['--ready-when', './none', '--ready-every', '1m', '--ready-timeout', '4s'],
  });
  expect(await a.event('not-ready')).toMatchObject({
    last: '--ready-when ./none: exit code 127 (command not found)',
  });
  expect(await a.event('ended')).toMatchObject({ reason: 'not-ready' });
  a.kill('SIGTERM');
  await a.ends();
});

test.concurrent('--notify: a line that says nothing is told once, and one without its end at the end', async ({
  lab,
}) => {
  const says = program(
    'exec 3> "$INCUMBENT_NOTIFY"; echo STATUS=loading >&3; echo READY >&3; echo ready=1 >&3; ' +
      'printf READY=1 >&3',
  );
  const a = lab.run('A', says, { options: ['--notify', '--ready-timeout', '2s'] });
  expect(await a.event('not-ready')).toMatchObject({ last: '"READY=1" without a line break' });
  expect(a.all('trouble')).toMatchObject([
    { what: 'readiness', error: '--notify: the line "READY" says nothing; write READY=1' },
  ]);
  a.kill('SIGTERM');
  await a.ends();
});

test.concurrent('a program that ends before it is ready ends the run', async ({ lab }) => {
  const a = lab.run('A', lab.worker('leader', 'exit=4'), { options: ['--notify'] });
  expect(await a.ends()).toEqual({ code: 4, signal: null });
  expect(a.all('ready')).toEqual([]);
});

test.concurrent('options that would say nothing are refused', async ({ lab }) => {
  const refused = async (...options: string[]) => {
    const { code, stderr } = await lab.cli('run', '-e', 'work', ...options, '--', 'true');
    return [code, stderr];
  };
  expect(await refused('--ready-every', '1s')).toEqual([
    64,
    expect.stringContaining('there is no --ready-when'),
  ]);
  expect(await refused('--ready-timeout', '1s')).toEqual([
    64,
    expect.stringContaining('give --ready-when or --notify too'),
  ]);
  expect(await refused('--notify', '--ready-when', 'true')).toEqual([
    64,
    expect.stringContaining('cannot be used with'),
  ]);
  expect(await refused('--notify', '--ready-timeout', '0s')).toEqual([
    64,
    expect.stringContaining('give more than 0'),
  ]);
});

const isFull = process.env['READINESS'] === 'full';
const handOvers = isFull ? 20 : 3;
const requests = isFull ? 1_000 : 90;
const preparing = isFull ? ['300', '2000'] : ['50', '150'];
const service = join(import.meta.dirname, 'support/run-service.cjs');

test.concurrent('--ready-when: a client that follows the leader meets none that prepares', {
  timeout: 600_000,
}, async ({ lab, onTestFinished }) => {
  const ports = await freePorts(3);
  for (const port of ports) {
    lab.run(`at ${port}`, [process.execPath, service, String(port), ...preparing], {
      options: [
        ...['--address', `127.0.0.1:${port}`, '--ready-every', '50ms'],
        ...['--ready-when', `curl -fs http://127.0.0.1:${port}/ok`],
      ],
    });
  }
  const election = createElection({ name: 'work', backend: file(lab.store) });
  const follow = toLeader(election, { waitTimeout: '5m', attempts: 100 });
  const dispatcher = new Agent().compose(follow);
  onTestFinished(async () => {
    follow.close();
    await election.close();
  });
  let led: bigint | undefined;
  void (async () => {
    for await (const { state, token } of election.observe()) if (state === 'led') led = token;
  })();
  const answers: string[] = [];
  const ask = async (until: () => boolean) => {
    while (!until()) {
      const { body } = await request('http://work/', { dispatcher, idempotent: true });
      answers.push(await body.text());
    }
  };
  let terms = 0;
  for (let last = led; terms <= handOvers; last = led) {
    if (terms > 0) await election.vacate();
    terms += 1;
    const share = Math.ceil((terms * requests) / (handOvers + 1));
    const isDone = () => answers.length >= share && led !== last;
    await Promise.all(Array.from({ length: 4 }, () => ask(isDone)));
  }
  const early = answers.filter((answer) => answer === 'early').length;
  console.log(
    `run --ready-when: ${answers.length} requests served in ${terms} terms, ${early} by a ` +
      'program that prepared',
  );
  expect(answers.length).toBeGreaterThanOrEqual(requests);
  expect(early).toBe(0);
});
