import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { append, Journal } from './journal.ts';
import { Tap } from './tap.ts';

/** A server under another client. */
export interface InteropServer {
  readonly port: number;
  /** Lets the server's clock pass the session timeout of a client that was cut off. */
  letExpire(): Promise<void>;
}

export interface Transcript {
  /** What the program was told, by connection where it says which. */
  readonly said: Readonly<Record<string, readonly string[]>>;
  /** What passed over the wire, by client and connection. */
  readonly wire: Readonly<Record<string, readonly string[]>>;
}

const boundMs = 60_000;

/**
 * Runs a program that holds the session. It is called with three addresses: for the client under
 * test, for another one, for passers-by. It says lines of JSON, and asks for `cut`, `heal` and `expire`: the client
 * under test loses its way to the server, gets it back, loses its session.
 */
export async function hold(
  command: string,
  args: readonly string[],
  server: InteropServer,
): Promise<Transcript> {
  const journal = new Journal();
  const main = await Tap.open('main', server.port, journal);
  const other = await Tap.open('other', server.port, journal);
  const passers = await Tap.open('passer-by', server.port, journal);
  const said: Record<string, string[]> = {};
  const recent: string[] = [];
  const child = spawn(command, [...args, main.address, other.address, passers.address], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  const timer = setTimeout(kill, boundMs);
  const ended = new Promise<string>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(String(code ?? signal)));
  });
  let complaints = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaints += chunk.toString();
  });
  try {
    for await (const line of createInterface(child.stdout)) {
      const { ask, by = 'the client' } = JSON.parse(line) as { ask?: string; by?: string };
      if (ask === undefined) {
        append(said, by, line);
        recent.push(line);
        continue;
      }
      if (ask === 'cut') await main.cut();
      else if (ask === 'heal') await main.heal();
      else if (ask === 'expire') await server.letExpire();
      else throw new Error(`the session asks for "${ask}"`);
      child.stdin.write('\n');
    }
    const how = await ended;
    if (how !== '0' || complaints !== '') {
      throw new Error(
        `the session ended with ${how} after\n${recent.slice(-5).join('\n')}\n${complaints}`,
      );
    }
  } finally {
    kill();
    clearTimeout(timer);
    process.off('exit', kill);
    await main.cut();
    await other.cut();
    await passers.cut();
  }
  return { said, wire: journal.lines };
}
