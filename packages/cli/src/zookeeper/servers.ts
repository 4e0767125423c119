/** The report that each server gives of itself, without a session. */
import type { HostAndPort, TlsOptions } from '@incumbent/zookeeper';
import { askFourLetterWord } from '@incumbent/zookeeper';

export interface ServerReport {
  /** `host:port` */
  readonly server: string;
  /**
   * `leader`, `follower`, `observer`, `standalone`, `read-only`; `unknown`: it answers, and may not
   * say; undefined: it serves no client.
   */
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
        const ask = (word: string) => askFourLetterWord(host, word, options);
        // A word that is not allowed is answered with a sentence, or with nothing at all.
        const [srvr, conf] = await Promise.all([ask('srvr'), ask('conf').catch(() => '')]);
        if (!isForbidden(srvr)) return readReport(server, srvr, conf);
        const others = ['mntr', 'stat'].map((word) => ask(word).catch(() => ''));
        const answers = [srvr, ...(await Promise.all(others))];
        options.signal.throwIfAborted();
        return readReport(server, answers.join('\n'), conf);
      } catch (error) {
        options.signal.throwIfAborted();
        return readReport(server, '', '', error instanceof Error ? error.message : String(error));
      }
    }),
  );
}

/**
 * @param said the answer to `srvr`; where that is forbidden, those to `mntr` and `stat` behind it
 * @param conf the answer to `conf`, even an error
 * @param error why there is no answer
 */
export function readReport(
  server: string,
  said: string,
  conf: string,
  error?: string,
): ServerReport {
  const told = /^(?:Mode: *|zk_server_state\t)(\S+)$/m.exec(said)?.[1];
  const mode = told ?? (isForbidden(said) ? 'unknown' : undefined);
  const firstLine = said.trim().split('\n')[0] ?? '';
  return {
    server,
    mode,
    version: /^(?:Zookeeper version: *|zk_version\t)(\d+(?:\.\d+)*)/m.exec(said)?.[1],
    conf: readConf(conf),
    problem: mode === undefined ? (error ?? (firstLine || 'it answers nothing')) : undefined,
  };
}

function isForbidden(answer: string): boolean {
  return /is not executed because it is not in the whitelist/.test(answer);
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
