/** A real ZooKeeper server for a file of tests, and the command on it. */

import type { ServerOptions, TestServer } from '@incumbent/zookeeper-testing';
import { serverAvailable, startServer } from '@incumbent/zookeeper-testing';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import type { Program, Result } from './bin.ts';
import { incumbent, start } from './bin.ts';

/** In every URL and variable where a password can stand; in no output. */
export const password = 'passw0rd-of-joe';

/**
 * Skips each test of the file, with the reason, where no server can run; in CI it fails instead.
 */
export function needServers(): void {
  beforeEach(({ skip }) => {
    const reason = serverAvailable({ tls: {} });
    if (reason === undefined) return;
    if (process.env['CI'] === 'true') throw new Error(reason);
    skip(reason);
  });
}

/** Starts one before the tests of the file. */
export function sharedServer(options: ServerOptions = {}): () => TestServer {
  let server: TestServer | undefined;
  beforeAll(async () => {
    if (serverAvailable(options) === undefined) server = await startServer(options);
  });
  afterAll(async () => {
    await server?.close();
  });
  return () => {
    if (server === undefined) throw new Error('the server was not started');
    return server;
  };
}

export interface Place {
  readonly env?: Readonly<Record<string, string>>;
}

/** One election on a server, named by each command. */
export interface OnElection {
  readonly store: string;
  /** Runs a command to its end. Its output holds no password. */
  run(args: readonly string[], place?: Place): Promise<Result>;
  /** A command that goes on, until the test ends. */
  start(args: readonly string[], place?: Place): Program;
  /** `incumbent run` with a program that sleeps; resolves when it says that. */
  candidate(
    id: string,
    until: 'leading' | 'waiting',
    options?: readonly string[],
  ): Promise<Program>;
}

export function onElection(store: string, election: string): OnElection {
  const words = ([command = '', ...rest]: readonly string[]) => [
    command,
    ...['-e', election, '--store', store],
    ...rest,
  ];
  return {
    store,
    async run(args, place) {
      const result = await incumbent(words(args), place);
      expect(`${result.stdout}${result.stderr}`).not.toContain(password);
      return result;
    },
    start: (args, place) => start(words(args), place),
    async candidate(id, until, options = []) {
      const program = start(
        words([
          'run',
          '--id',
          id,
          '--address',
          `${id}.example:80`,
          ...options,
          '--',
          'sleep',
          '1000',
        ]),
      );
      await program.said(until === 'leading' ? /: started sleep/ : /waiting for the seat/);
      return program;
    },
  };
}
