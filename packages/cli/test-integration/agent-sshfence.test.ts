// `--fence sshfence:…` against a real sshd on loopback, with a key of the test.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { userInfo } from 'node:os';
import { expect } from 'vitest';
import { fenceProgram, parseFence } from '../src/agent/fencing.ts';
import { machineMetadata, metadataKeys, thisMachine } from '../src/agent/machine.ts';
import type { ServiceNode } from './support/agents.ts';
import { test as base, cluster, killFence } from './support/agents.ts';
import type { Lab } from './support/run-process.ts';
import { checkOneAtATime, isAlive, until } from './support/run-process.ts';

const sshd = '/usr/sbin/sshd';
const { username } = userInfo();
const missing = existsSync(sshd) ? undefined : 'needs sshd: apt-get install openssh-server';
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);
const test = base.skipIf(missing !== undefined);

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('close', () => resolve(false)).setTimeout(1_000, () => socket.destroy());
    socket.once('connect', () => socket.destroy());
  });
}

/** Starts sshd. @returns the options with which `ssh` reaches it */
async function startSshd(lab: Lab): Promise<string[]> {
  const key = (name: string) => {
    const args = ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', lab.path(name)];
    execFileSync('ssh-keygen', args);
    return readFileSync(lab.path(`${name}.pub`), 'utf8');
  };
  const hostKey = key('host-key');
  lab.write('authorized', key('user-key'));
  const port = await freePort();
  lab.write('known-hosts', `[127.0.0.1]:${port} ${hostKey}`);
  const config = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${lab.path('host-key')}`,
    `AuthorizedKeysFile ${lab.path('authorized')}`,
    'PidFile none',
    'StrictModes no',
    'UsePAM no',
    'PasswordAuthentication no',
    'PermitRootLogin prohibit-password',
  ];
  // Where sshd of root locks its children in. A service of the system makes it, and none runs here.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true });
  const args = ['-D', '-e', '-f', lab.write('sshd_config', `${config.join('\n')}\n`)];
  spawn(sshd, args, { env: lab.env, stdio: 'ignore' });
  await until('sshd listens', () => answers(port));
  return [
    `Port=${port}`,
    `IdentityFile=${lab.path('user-key')}`,
    'IdentitiesOnly=yes',
    `UserKnownHostsFile=${lab.path('known-hosts')}`,
    'StrictHostKeyChecking=yes',
  ];
}

const asOptions = (options: readonly string[]) =>
  options.flatMap((option) => ['--ssh-option', option]);

test.concurrent('sshfence kills the process that listens at the address of a dead agent', async ({
  lab,
}) => {
  const ssh = await startSshd(lab);
  const fencing = ['--fence', `sshfence:${username}@`, ...asOptions(ssh)];
  const settings = { fencing };
  const [a, b] = (await cluster(lab, ['a', 'b'], settings)) as [ServiceNode, ServiceNode];
  a.agent.kill('SIGKILL');
  await b.isActive();
  expect(isAlive(a.pid)).toBe(false);
  expect(await b.agent.event('fenced')).toMatchObject({
    predecessor: 'a',
    method: `sshfence:${username}@`,
  });
  checkOneAtATime(lab.stamps());
  // A service that does not run is not active either.
  await a.startService();
  await a.startAgent().event('waiting');
  b.agent.kill('SIGKILL');
  b.killService();
  await a.isActive();
  checkOneAtATime(lab.stamps());
});

test.concurrent('sshfence that does not get through has failed, and the next method is tried', async ({
  lab,
}) => {
  const ssh = await startSshd(lab);
  const nowhere = [`Port=${await freePort()}`, ...ssh.slice(1)];
  const fencing = [
    ...['--fence', `sshfence:${username}@`, '--fence', `sshfence:${username}@127.0.0.1:1`],
    ...['--fence', killFence(lab), ...asOptions(nowhere)],
  ];
  const [a, b] = (await cluster(lab, ['a', 'b'], { fencing })) as [ServiceNode, ServiceNode];
  a.agent.kill('SIGKILL');
  await b.isActive();
  // The second one is for another service, so it is not tried.
  expect(b.agent.all('fencing').map(({ method }) => method)).toEqual([
    fencing[1],
    'shell (--fence 3)',
  ]);
  expect(isAlive(a.pid)).toBe(false);
  checkOneAtATime(lab.stamps());
});

const own = thisMachine();

/** Fences the service at that port. @returns the exit code of ssh, and its output */
async function fence(
  lab: Lab,
  options: readonly string[],
  port: number,
  metadata: Readonly<Record<string, string>> = {},
) {
  const target = {
    ...{ id: 'a', incarnation: 'i', addresses: [`127.0.0.1:${port}`], token: 1n },
    metadata: { ...machineMetadata(own), ...metadata },
  };
  const program = fenceProgram(
    parseFence(`sshfence:${username}@127.0.0.1:${port}`, 0),
    target,
    { env: {}, cwd: lab.directory },
    { options, connectTimeoutMs: 10_000 },
    // Otherwise the address would be refused before ssh is asked.
    { ...own, digest: undefined },
  );
  if ('unusable' in program) throw new Error(program.unusable);
  const child = spawn(program.program, program.args, {
    env: lab.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text));
  const code = await new Promise((resolve) => child.once('close', resolve));
  return { code, said };
}

test.concurrent('the far side: a frozen listener dies, with all that hold its socket; a free port is a success', async ({
  lab,
}) => {
  const ssh = await startSshd(lab);
  const port = await freePort();
  expect(await fence(lab, ssh, port)).toEqual({
    code: 0,
    said: `nothing listens at port ${port}\n`,
  });
  // A second process with the same socket.
  const listener = `
    const server = require('node:net').createServer().listen(${port}, '127.0.0.1', () => {
      const stdio = ['ignore', 'ignore', 'ignore', server._handle.fd];
      console.log(require('node:child_process').spawn('sleep', ['9999'], { stdio }).pid);
    });`;
  const child = spawn(process.execPath, ['-e', listener], {
    env: lab.env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const helper = await new Promise<number>((resolve) =>
    child.stdout.once('data', (text) => resolve(Number(text))),
  );
  process.kill(child.pid!, 'SIGSTOP');
  if (own.digest !== undefined) {
    const other = { [metadataKeys.machine]: '7'.repeat(32) };
    expect(await fence(lab, ssh, port, other)).toEqual({
      code: 6,
      said: expect.stringMatching(
        /^this is another machine than the one of the leader, .*of its host\n$/,
      ),
    });
    expect(isAlive(helper)).toBe(true);
  }
  const { code, said } = await fence(lab, ssh, port);
  expect({ code, said }).toMatchObject({ code: 0, said: expect.stringMatching(/^killed /) });
  expect(said.trim().split(' ').slice(1).map(Number).sort()).toEqual([child.pid, helper].sort());
  expect([isAlive(child.pid!), isAlive(helper)]).toEqual([false, false]);
});
