import { expect, test } from 'vitest';
import { parseCall } from '../src/agent/calls.ts';
import { invoke } from './support/invoke.ts';

const service = [
  ...['agent', '-e', 'db', '--health', 'true'],
  ...['--become-active', 'true', '--become-standby', 'true'],
];

test.each([
  [[], /agent needs --fence or --pid: an agent that dies leaves its service active/],
  [['--fence', 'sshfence:ops@'], /give --address HOST:PORT, the one of this service/],
  [['--fence', 'sshfence:ops@', '--address', 'db1'], /give --address HOST:PORT/],
  [['--fence', 'kill'], /--fence "kill" is no method/],
  [['--fence', 'shell:true', '--ssh-option', 'Port=1'], /--ssh-option goes with --fence sshfence/],
  [['--fence', 'shell:true', '--pid-group'], /--pid-group goes with --pid/],
  [['--pid', '1'], /--pid 1 is not the number of a service/],
  [['--pid', 'x', '--lease', '1s'], /--lease 1s is too short for an agent/],
  [['--pid', 'x', '--health', 'http://db1/'], /not an http:\/\/ URL on/],
  [['--pid', 'x', '--metadata', 'service-guard=pid'], /--metadata service-guard: keys that begin/],
  [['--pid', 'x', '--active-timeout', '0s'], /--active-timeout 0s is too short/],
  [['--pid', 'x', '--standby-timeout', '0s'], /--standby-timeout 0s is too short/],
  [['--pid', 'x', '--health-every', '0s'], /--health-every 0s is too short: give at least 10ms/],
])('refused before anything is changed: %s', async (options, message) => {
  const { code, stderr } = await invoke([...service, ...options]);
  expect({ code, stderr }).toMatchObject({ code: 64, stderr: expect.stringMatching(message) });
});

test.each(['./ok', 'bin/ok', 'ok', 'curl -f http://db1:80/', 'pg_isready -h localhost:5432'])(
  '%s is a command',
  (text) => {
    expect(parseCall('--health', text)).toMatchObject({ kind: 'shell', command: text });
  },
);

test.each([
  ['127.0.0.1:5101/ok', /looks like a URL.*: write http:\/\/127\.0\.0\.1:5101\/ok$/],
  ['localhost/ok', /looks like a URL/],
  ['db1:80', /looks like a URL/],
  ['[::1]:80/ok', /looks like a URL/],
  ['ftp://127.0.0.1/ok', /not an http:\/\/ URL on/],
])('%s is no command', (text, message) => {
  expect(() => parseCall('--health', text)).toThrow(message);
});
