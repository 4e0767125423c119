import { append, Journal } from './journal.ts';
import { Tap } from './tap.ts';

/** A server under other clients. */
export interface InteropServer {
  readonly port: number;
  /** Lets the server's clock pass the session timeout of a client that was cut off. */
  letExpire(): Promise<void>;
}

/** What a session works with. */
export interface Stage {
  /** Addresses, as `host:port`: for the client under test, for another one, for passers-by. */
  readonly main: string;
  readonly other: string;
  readonly passers: string;
  /** Puts a line into the transcript. Between two speakers there is no order. */
  say(line: string, by?: string): void;
  /** The client under test loses its way to the server, gets it back, loses its session. */
  ask(fault: 'cut' | 'heal' | 'expire'): Promise<void>;
}

export interface Transcript {
  /** What the clients were told, by speaker. */
  readonly said: Readonly<Record<string, readonly string[]>>;
  /** What passed over the wire, by client and connection. */
  readonly wire: Readonly<Record<string, readonly string[]>>;
}

/** Lets `act` hold its session with a server, and takes it down. */
export async function record(
  server: InteropServer,
  act: (stage: Stage) => Promise<void>,
): Promise<Transcript> {
  const journal = new Journal();
  const said: Record<string, string[]> = {};
  const main = await Tap.open('main', server.port, journal);
  const other = await Tap.open('other', server.port, journal);
  const passers = await Tap.open('passer-by', server.port, journal);
  try {
    await act({
      main: main.address,
      other: other.address,
      passers: passers.address,
      say: (line, by = 'the client') => append(said, by, line),
      ask: async (fault) => {
        if (fault === 'cut') await main.cut();
        else if (fault === 'heal') await main.heal();
        else await server.letExpire();
      },
    });
  } finally {
    for (const tap of [main, other, passers]) await tap.cut();
  }
  return { said, wire: journal.lines };
}
