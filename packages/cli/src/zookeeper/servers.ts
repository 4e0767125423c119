/** What each server says of itself, without a session. */
import type { HostAndPort, TlsOptions } from '@incumbent/zookeeper';
import { askFourLetterWord } from '@incumbent/zookeeper';

export interface ServerReport {
  /** `host:port` */
  readonly server: string;
  /** `leader`, `follower`, `observer`, `standalone`, `read-only`; undefined: it serves nobody. */
  readonly mode: string | undefined;
  /** `3.8.0` */
  readonly version: string | undefined;
  /** Undefined where its whitelist does not have `conf`. */
  readonly conf: ServerTimes | undefined;
  /** Why there is no mode. */
  readonly problem: string | undefined;
}

export interface ServerTimes {
  readonly tickTimeMs: number;
  readonly minSessionTimeoutMs: number;
  readonly maxSessionTimeoutMs: number;
}

/** Asks all of them at once. Rejects only with the reason of `signal`. */
export async function askServers(
  hosts: readonly HostAndPort[],
  options: {
    readonly tls: TlsOptions | undefined;
    readonly timeoutMs: number;
    readonly signal: AbortSignal;
  },
): Promise<readonly ServerReport[]> {
  return Promise.all(
    hosts.map(async (host) => {
      const server = `${host.host.includes(':') ? `[${host.host}]` : host.host}:${host.port}`;
      try {
        const srvr = await askFourLetterWord(host, 'srvr', options);
        // Refused by a sentence, or by nothing at all.
        const conf = await askFourLetterWord(host, 'conf', options).catch(() => '');
        options.signal.throwIfAborted();
        return readReport(server, srvr, conf);
      } catch (error) {
        options.signal.throwIfAborted();
        return readReport(server, '', '', error instanceof Error ? error.message : String(error));
      }
    }),
  );
}

/**
 * @param srvr the answer to `srvr`
 * @param conf the answer to `conf`, whatever it is
 * @param error why there is no answer
 */
export function readReport(
  server: string,
  srvr: string,
  conf: string,
  error?: string,
): ServerReport {
  const mode = /^Mode: *(\S+)$/m.exec(srvr)?.[1];
  const firstLine = srvr.trim().split('\n')[0] ?? '';
  return {
    server,
    mode,
    version: /^Zookeeper version: *(\d+(?:\.\d+)*)/m.exec(srvr)?.[1],
    conf: readConf(conf),
    problem: mode === undefined ? (error ?? (firstLine || 'it answers nothing')) : undefined,
  };
}

function readConf(conf: string): ServerTimes | undefined {
  const number = (name: string) => Number(new RegExp(`^${name}=(\\d+)$`, 'm').exec(conf)?.[1]);
  const times = {
    tickTimeMs: number('tickTime'),
    minSessionTimeoutMs: number('minSessionTimeout'),
    maxSessionTimeoutMs: number('maxSessionTimeout'),
  };
  return Object.values(times).every((ms) => ms > 0) ? times : undefined;
}
