// The calls of `incumbent agent` to a service that answers, refuses, and breaks off.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { asProgram, lookAtHealth, parseCall, run } from '../src/agent/calls.ts';
import { listenersAt } from '../src/agent/listeners.ts';
import { commandLine, isAlive, living, processes, until } from './support/run-process.ts';

const head = (status: string) => `HTTP/1.1 ${status}\r\nconnection: close\r\n`;
const answers = {
  ok: `${head('200 OK')}content-length: 2\r\n\r\nok`,
  refused: `${head('500 No')}content-length: 2\r\n\r\nno`,
  late: `${head('504 Gateway Timeout')}content-length: 2\r\n\r\nno`,
  cut: `${head('200 OK')}content-length: 9\r\n\r\nok`,
  silent: '',
} as const;

/** A service that reads one request, writes this, and closes the connection. */
async function service(answer: string): Promise<{ url: string; heard: string[] }> {
  const heard: string[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (data) => {
      heard.push(data.toString());
      socket.end(answer);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/x`, heard };
}

const env = { INCUMBENT_ELECTION: 'db', INCUMBENT_CANDIDATE: 'a', INCUMBENT_TOKEN: '7' };
const context = { env, cwd: '/' };
const forever = new AbortController().signal;

async function exitCode(url: string): Promise<number> {
  const { program, args, env } = asProgram(parseCall('--become-active', url), context);
  const child = spawn(program, args, { env, stdio: 'ignore' });
  const [code] = await once(child, 'exit');
  return code;
}

test('a request as a program: 0 for a success, 1 for a refusal, 75 when nobody knows', async () => {
  const { url, heard } = await service(answers.ok);
  expect(await exitCode(url)).toBe(0);
  expect(heard[0]).toMatch(/^POST \/x [\s\S]*\{"election":"db","candidate":"a","token":"7"\}$/);
  expect(await exitCode((await service(answers.refused)).url)).toBe(1);
  // A proxy has not waited for the service.
  expect(await exitCode((await service(answers.late)).url)).toBe(75);
  expect(await exitCode((await service(answers.cut)).url)).toBe(75);
  expect(await exitCode((await service(answers.silent)).url)).toBe(75);
  expect(await exitCode('http://127.0.0.1:1/x')).toBe(1);
});

test('become-standby counts only when the whole answer says so', async () => {
  const ask = async (answer: string) => {
    const { url } = await service(answer);
    return run(parseCall('--become-standby', url), 'POST', context, forever);
  };
  await expect(ask(answers.ok)).resolves.toBeUndefined();
  await expect(ask(answers.refused)).rejects.toThrow(/status 500/);
  await expect(ask(answers.cut)).rejects.toThrow(/aborted/);
  await expect(ask(answers.silent)).rejects.toThrow(/socket hang up/);
});

test('a look tells the service its role, to compare with its own', async () => {
  const { url, heard } = await service(answers.ok);
  const role = { ...context, env: { ...env, INCUMBENT_ROLE: 'active' } };
  await lookAtHealth(parseCall('--health', url), role, forever);
  expect(heard[0]).toMatch(/^GET [\s\S]*incumbent-role: active\r\nincumbent-token: 7\r\n/);
});

test('a port is found where something listens at it', async () => {
  const { url } = await service(answers.ok);
  const numbers = process.platform === 'linux' ? [1, 0] : [undefined, undefined];
  const found = await Promise.all([Number(new URL(url).port), 1].map(listenersAt));
  expect(found.map((sockets) => sockets?.length)).toEqual(numbers);
});

test('a command of the agent ends with the agent', async () => {
  const module = new URL('../dist/run/shell-check.js', import.meta.url);
  const script = `
    import { runShellCheck } from '${module}';
    const { signal } = new AbortController();
    runShellCheck('--become-standby', 'exec sleep 9999', process.env, '/', signal, true);`;
  // The command itself has no output. Its number is that of the only child.
  const args = ['--input-type=module', '-e', script];
  const agent = spawn(process.execPath, args, { stdio: 'ignore' });
  onTestFinished(() => void agent.kill('SIGKILL'));
  const command = () => processes().find(({ parent }) => parent === agent.pid)?.pid;
  await until('the command runs', () => command() !== undefined);
  const pid = command()!;
  agent.kill('SIGKILL');
  await until('the command is dead', () => !isAlive(pid));
});

test('a look leaves no process behind that another one would have to reap', async () => {
  const stop = new AbortController();
  const looking = lookAtHealth(parseCall('--health', 'exec sleep 98765'), context, stop.signal);
  const sleeps = () =>
    processes().find(
      ({ pid, parent }) => parent === process.pid && /^sleep.98765/.test(commandLine(pid)),
    );
  await until('it runs', () => sleeps() !== undefined);
  expect(living(sleeps()!.pid)).toHaveLength(1);
  stop.abort(new Error('enough'));
  await looking;
});

test('health: no success is unhealthy, a broken connection disconnected, a timeout not responding', async () => {
  const look = async (url: string, signal = forever) =>
    (await lookAtHealth(parseCall('--health', url), context, signal)).health;
  expect(await look((await service(answers.ok)).url)).toBe('healthy');
  expect(await look((await service(answers.refused)).url)).toBe('unhealthy');
  expect(await look((await service(answers.silent)).url)).toBe('disconnected');
  expect(await look((await service(answers.cut)).url)).toBe('disconnected');
  expect(await look('http://127.0.0.1:1/')).toBe('disconnected');
  expect(await look('true')).toBe('healthy');
  expect(await look('exit 3')).toBe('unhealthy');
  expect(await look('kill -KILL $$')).toBe('not-responding');
  const stop = new AbortController();
  const hanging = look('sleep 9999', stop.signal);
  stop.abort(new Error('too long'));
  expect(await hanging).toBe('not-responding');
});
