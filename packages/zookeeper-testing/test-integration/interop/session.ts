import { append, Journal } from './journal.ts';
import { Tap } from './tap.ts';

/** A server for other clients. */
export interface InteropServer {
  readonly port: number;
  /** Advances the server's clock beyond the session timeout of a client that was cut off. */
  letExpire(): Promise<void>;
}

/** The parts that a session works with. */
export interface Stage {
  /**
   * Addresses, as `host:port`: for the client under test, for another client, for clients that come
   * and go.
   */
  readonly main: string;
  readonly other: string;
  readonly passers: string;
  /** Adds a line to the transcript. Between two speakers there is no order. */
  say(line: string, by?: string): void;
  /**
   * Cuts the link between the client under test and the server, restores it, or lets the session
   * expire.
   */
  ask(fault: 'cut' | 'heal' | 'expire'): Promise<void>;
}

export interface Transcript {
  /** The lines of the clients, by speaker. */
  readonly said: Readonly<Record<string, readonly string[]>>;
  /** The messages on the wire, by client and connection. */
  readonly wire: Readonly<Record<string, readonly string[]>>;
}

/** Runs `act` against a server, and records its session. */
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
