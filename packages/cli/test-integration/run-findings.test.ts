// Faults that a hostile reading of `run` found: one schedule each.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { bin, living, monotonicMs, processes, test, until } from './support/run-process.ts';

test.concurrent.for(['0', '4'])(
  'a program that ended by itself (%s) while its supervisor stood still is not run again',
  async (code, { lab }) => {
    const ran = join(lab.directory, 'ran');
    const program = [
      'sh',
      '-c',
      `mkfifo ${ran}.go; echo ran >>${ran}; read -r _ <${ran}.go; exit ${code}`,
    ];
    const a = lab.run('A', program, { lease: '4s', options: ['--once'] });
    const { pid: group } = await a.started();
    await until('it works', () => existsSync(ran));
    a.kill('SIGSTOP');
    const stoppedMs = monotonicMs();
    writeFileSync(`${ran}.go`, 'go\n');
    await until('it has ended', () => living(group).length === 0);
    await until('belief is over', () => monotonicMs() > stoppedMs + 4_000);
    a.kill('SIGCONT');
    expect(await a.ends()).toEqual({ code: Number(code), signal: null });
    expect(readFileSync(ran, 'utf8')).toBe('ran\n');
  },
);

test.concurrent('TERM is heard although the output of run and its program is not read', async ({
  lab,
}) => {
  const command = [
    process.execPath,
    bin,
    ...lab.arguments('A'),
    '--',
    'sh',
    '-c',
    'echo $$ >program; exec yes >&2',
  ];
  // A pipe as a shell makes it; its reader reads nothing.
  const line = '{ exec "$@"; } 2>&1 | sleep 1000';
  const pidFile = join(lab.directory, 'pid');
  const shell = spawn(
    'sh',
    ['-c', line, pidFile, 'sh', '-c', 'echo $$ >"$0"; exec "$@"', pidFile, ...command],
    {
      stdio: 'ignore',
      cwd: lab.directory,
      env: lab.env,
      detached: true,
    },
  );
  const programFile = join(lab.directory, 'program');
  const read = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');
  await until('its program runs', () => read(programFile).endsWith('\n'));
  const supervisor = Number(read(pidFile));
  process.kill(supervisor, 'SIGTERM');
  await until('it has given the seat back and ended', () =>
    processes().every(({ pid, state }) => pid !== supervisor || state === 'Z'),
  );
  const status = await lab.cli('status', '-e', 'work', '--json');
  expect(JSON.parse(status.stdout)).toMatchObject({ state: 'vacant', holderGone: false });
  process.kill(-shell.pid!, 'SIGKILL');
});

test.concurrent('TERM while waiting is not answered with what an earlier program ended with', async ({
  lab,
}) => {
  const a = lab.run('A', ['sh', '-c', 'exit 3'], { options: ['--restart', 'always'] });
  await a.event('restarting');
  const b = lab.run('B', lab.worker());
  await b.started();
  await a.event('waiting', 2);
  a.kill('SIGTERM');
  expect(await a.ends()).toEqual({ code: 143, signal: null });
});
