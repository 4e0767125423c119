import { checkOptions, checkTimeout, namesOf } from './arguments.ts';
import type { HostAndPort } from './connection-string.ts';
import { openSocket } from './net/connection.ts';
import { checkTls } from './net/secure-context.ts';
import type { TlsOptions } from './net/tls-options.ts';
import { onAbort } from './on-abort.ts';

/** More than any answer to a word about one server. */
const maxAnswerBytes = 64 * 1024;

/** Options of `askFourLetterWord`. */
export interface FourLetterWordOptions {
  /** Use TLS; `{}` trusts the authorities that Node trusts. Default: a plain connection. */
  readonly tls?: TlsOptions | undefined;
  /** How long the answer may take, in ms. Default 5,000. */
  readonly timeoutMs?: number | undefined;
  /** Gives up when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

const names = namesOf<FourLetterWordOptions>({ tls: true, timeoutMs: true, signal: true });

/**
 * Asks one server a four-letter word (`srvr`, `conf`, `mntr` …), over a connection of its own and
 * without a session. A server always answers `srvr`. It answers others if its
 * `4lw.commands.whitelist` has them, and otherwise says so in a sentence.
 * @returns the answer as it is. Rejects with an Error if no server listens or answers in time, with
 *   InvalidArgumentError, and with the reason of `signal`
 */
export async function askFourLetterWord(
  { host, port }: HostAndPort,
  word: string,
  options: FourLetterWordOptions = {},
): Promise<string> {
  checkOptions('askFourLetterWord', options, names);
  const { tls, signal } = options;
  const timeoutMs = checkTimeout('timeoutMs', options.timeoutMs ?? 5_000);
  const checked = tls === undefined ? undefined : checkTls(tls);
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    const [socket] = openSocket({ host, port, name: host }, checked, () => socket.write(word));
    const finish = (error?: Error) => {
      clearTimeout(timer);
      stopListening();
      socket.destroy();
      if (error === undefined) resolve(Buffer.concat(chunks).toString('utf8'));
      else reject(error);
    };
    const timer = setTimeout(() => {
      finish(new Error(`no answer within ${Math.round(timeoutMs)} ms`));
    }, timeoutMs);
    const stopListening = onAbort(signal, () => finish(signal?.reason));
    socket.on('data', (chunk: Uint8Array) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxAnswerBytes) finish(new Error('that is no ZooKeeper server'));
    });
    socket.on('error', finish);
    // The server ends the connection after its answer; some servers reset it.
    socket.on('close', () => finish());
  });
}
