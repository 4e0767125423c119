// --ready-when and --notify: when others may send requests to the program of a run.
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
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
