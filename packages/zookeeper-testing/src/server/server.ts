/// <reference lib="esnext.disposable" preserve="true" />
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestCertificates } from './certificates.ts';
import { createCertificates } from './certificates.ts';
import { ServerStartError } from './errors.ts';
import { findInstallation } from './installation.ts';
import type { ServerOptions } from './options.ts';
import { checkServerOptions } from './options.ts';
import { freePorts } from './ports.ts';
import { RunningServer } from './running-server.ts';

/** A real ZooKeeper server, a process of its own that ends with this one. */
export interface TestServer extends AsyncDisposable {
  /** `zk://127.0.0.1:port`. */
  readonly connectionString: string;
  /** `zks://127.0.0.1:port`; undefined without the option `tls`. */
  readonly secureConnectionString: string | undefined;
  readonly host: string;
  readonly port: number;
  readonly securePort: number | undefined;
  /**
   * The authority that a client trusts, and the certificate that it shows; undefined without the
   * option `tls`.
   */
  readonly certificates: TestCertificates | undefined;
  /** Of the present or last process; `restart()` changes it. */
  readonly pid: number;
  readonly state: 'running' | 'frozen' | 'stopped';
  /** SIGKILL: as when the machine loses its power. Resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM (after a thaw, when frozen), and SIGKILL after ten seconds. */
  stop(): Promise<void>;
  /**
   * SIGSTOP: connections stay, connects succeed, nothing is answered. Resolves when the process has
   * stopped. Rejects with `NOT_RUNNING`.
   */
  freeze(): Promise<void>;
  /** SIGCONT. Without effect on a server that is not frozen. */
  thaw(): void;
  /**
   * Stops the server if need be, and starts it again with the same data on the same ports. Resolves
   * when it serves. With `until: 'answering'` it resolves when the server answers, even that it
   * does not serve: a member of an ensemble can do no more alone. Rejects with ServerStartError.
   */
  restart(options?: RestartOptions): Promise<void>;
  /**
   * Asks `srvr`, `mntr`, `cons` and the like over a connection of its own. Rejects if no server
   * listens, and with `TIMED_OUT` if no answer came in time (default 5 000 ms).
   */
  fourLetterWord(word: string, options?: { readonly timeoutMs?: number }): Promise<string>;
  /** The last 16 KiB of what the server has printed. Works after `close()` too. */
  log(): string;
  /**
   * Kills the process and removes its files, except a `dataDirectory` that was given. Idempotent.
   */
  close(): Promise<void>;
}

export interface RestartOptions {
  /** Default `serving`. */
  readonly until?: 'serving' | 'answering';
  readonly signal?: AbortSignal;
}

const maxStarts = 5;

/**
 * Starts the Java server on free ports of 127.0.0.1, with a fresh temporary directory. Resolves
 * when it serves.
 *
 * Rejects with ServerUnavailableError if Java or ZooKeeper's jars are missing, and with the reason
 * of `signal`. It rejects with ServerStartError (and the tail of the output) if the server ends, or
 * does not serve within `startTimeoutMs`. Nothing is left behind then.
 */
export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  checkServerOptions('startServer', options);
  const installation = findInstallation(options);
  const host = '127.0.0.1';
  return onFreePorts(async () => {
    const [port, securePort] = (await freePorts(2, host)) as [number, number];
    const directory = await temporaryDirectory();
    const certificates = await certificatesFor(options, directory);
    const server = new RunningServer({
      options,
      installation,
      directory,
      dataDirectory: options.dataDirectory ?? join(directory, 'data'),
      temporaryDirectory: directory,
      host,
      port,
      securePort: options.tls && securePort,
      certificates,
      command: [],
      membership: undefined,
    });
    try {
      await server.start('serving', options.signal);
    } catch (error) {
      await server.close();
      throw error;
    }
    return server;
  });
}

/** Repeats a start that failed because another process had taken a port; no other failure. */
export async function onFreePorts<Started>(start: () => Promise<Started>): Promise<Started> {
  for (let starts = 1; ; starts += 1) {
    try {
      return await start();
    } catch (error) {
      const again = error instanceof ServerStartError && error.portTaken && starts < maxStarts;
      if (!again) throw error;
    }
  }
}

/** In `directory`, which is removed when they cannot be made. */
async function certificatesFor(
  options: ServerOptions,
  directory: string,
): Promise<TestCertificates | undefined> {
  if (options.tls === undefined) return undefined;
  try {
    return await createCertificates(join(directory, 'tls'));
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

/** Without symbolic links, because the server's own name of it is compared with ours. */
export async function temporaryDirectory(): Promise<string> {
  return mkdtemp(join(await realpath(tmpdir()), 'zookeeper-test-'));
}
