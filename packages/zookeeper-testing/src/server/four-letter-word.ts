import { once } from 'node:events';
import { connect } from 'node:net';
import { TestServerError } from './errors.ts';

/**
 * Sends one of ZooKeeper's four-letter words over a connection of its own, and returns the answer.
 * Rejects if no server listens, and with `TIMED_OUT` if the answer is not complete in time.
 */
export function askFourLetterWord(
  target: { readonly host: string; readonly port: number },
  word: string,
  timeoutMs = 5000,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect({ host: target.host, port: target.port });
    const timer = setTimeout(() => {
      const where = `${target.host}:${target.port}`;
      socket.destroy(new TestServerError('TIMED_OUT', `no answer to ${word} from ${where}`));
    }, timeoutMs);
    socket.on('connect', () => socket.write(word));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(timer);
      // Without effect when the answer or an error came before.
      reject(
        new TestServerError('NOT_RUNNING', `the connection closed before ${word} was answered`),
      );
    });
  });
}

/** Whether a server listens there. */
export async function accepts(target: {
  readonly host: string;
  readonly port: number;
}): Promise<boolean> {
  const socket = connect({ host: target.host, port: target.port });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** The role in an answer to `srvr`, such as `leader`; undefined while the server does not serve. */
export function modeOf(answer: string): string | undefined {
  return /^Mode: (\S+)/m.exec(answer)?.[1];
}
