import type { HostAndPort } from '../connection-string.ts';
import { openSocket } from '../net/connection.ts';
import { checkTls } from '../net/secure-context.ts';
import type { TlsOptions } from '../net/tls-options.ts';
import { onAbort } from '../on-abort.ts';

/** More than any answer to a word that is asked for here. */
const maxAnswerBytes = 64 * 1024;

/**
 * Asks a server one of the four letter words, on a connection of its own.
 * @returns its answer; rejects when nobody listens or answers in time, and when `signal` aborts
 */
export function askFourLetterWord(
  { host, port }: HostAndPort,
  word: string,
  options: {
    readonly tls: TlsOptions | undefined;
    readonly timeoutMs: number;
    readonly signal: AbortSignal;
  },
): Promise<string> {
  const { tls, timeoutMs, signal } = options;
  const checked = tls === undefined ? undefined : checkTls(tls);
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
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
    const stopListening = onAbort(signal, () => finish(signal.reason));
    socket.on('data', (chunk: Uint8Array) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxAnswerBytes) finish(new Error('that is no ZooKeeper server'));
    });
    socket.on('error', finish);
    // The server ends the connection behind its answer; some reset it.
    socket.on('close', () => finish());
  });
}
