/**
 * What a session can be, what can happen to it, and what can have to be done then. What follows from what is decided in
 * `session-machine.ts`.
 *
 *     connecting ──► connected ──► suspended ──► connected (same session)
 *                        ▲              │
 *                        └── expired ◄──┘        (then a new session)
 *
 * A connection goes one way: opening → greeting → (SASL) → (doubting) → introducing → authenticating → catching up →
 * serving.
 */
import type { State } from '../state.ts';

/** What listeners were told last while no server serves us. */
export type Away = Extract<State, 'connecting' | 'suspended' | 'expired'>;

/**
 * Whose session the next handshake speaks of. `provisional`: a server without a quorum gave it, and no other server
 * knows it. `known`: a server with a quorum knows it.
 */
export type Identity = 'none' | 'provisional' | 'known';

/** How many answers to our SetWatches are still to come. */
export interface Introduced {
  readonly unrestored: number;
}

export interface Granted {
  /** The server has no quorum. */
  readonly readOnly: boolean;
}

/** How far the only connection has come. */
export type Link =
  | { readonly at: 'none' }
  | { readonly at: 'opening' }
  /** The handshake is sent. Nothing stands behind it: SASL, or a doubt, takes round trips of its own. */
  | { readonly at: 'greeting' }
  /** Who we are and what we watch stands behind it. `taken`: all credentials are, though it is not answered. */
  | ({ readonly at: 'greeting-at-once'; readonly taken: boolean } & Introduced)
  | ({ readonly at: 'sasl' } & Granted)
  /** The server is asked how far its quorum has come. */
  | ({ readonly at: 'doubting' } & Granted)
  /** Who we are and what we watch is being written. */
  | ({ readonly at: 'introducing' } & Granted)
  /** It is written; some credentials are not answered. */
  | ({ readonly at: 'authenticating' } & Granted & Introduced)
  /** Everything is answered; the watches are told of the gap. */
  | ({ readonly at: 'catching-up' } & Granted & Introduced);

/**
 * Servers that have lost their data shut us out as if they lagged behind. `sinceMs`: since when, in an expired session,
 * every server of every round did. `asks`: this round asks without saying what we have seen.
 */
export interface Doubt {
  readonly sinceMs: number | undefined;
  readonly asks: boolean;
}

/** `asked`: the session is to be closed on a server. `sent`: one was told, and has not answered. */
export type Ending = 'no' | 'asked' | 'sent';

export type SessionAt =
  /** No server serves us. One is looked for, or is being greeted. */
  | {
      readonly at: 'seeking';
      readonly told: Away;
      readonly identity: Identity;
      readonly link: Link;
      readonly doubt: Doubt;
      readonly ending: Ending;
    }
  /** Requests are answered. `isOpen`: they are sent, for listeners have been told. */
  | ({
      readonly at: 'serving';
      readonly identity: Exclude<Identity, 'none'>;
      readonly isOpen: boolean;
      readonly ending: Ending;
    } & Granted &
      Introduced)
  /** A server refuses the credentials. Only closed after that. */
  | { readonly at: 'refused' }
  | { readonly at: 'closed' };

export type SessionEvent =
  /** A server is tried. */
  | { readonly on: 'opening' }
  /** Bytes may be written. */
  | { readonly on: 'opened' }
  /** Who we are and what we watch was written. `taken`: there is nothing that a server would have to take. */
  | { readonly on: 'introduced'; readonly taken: boolean; readonly watches: number }
  /** The server grants a session. `isOurs`: the one that was asked for. */
  | ({ readonly on: 'granted'; readonly isOurs: boolean } & Granted)
  /** The server gives no session. */
  | { readonly on: 'not-granted'; readonly readOnly: boolean; readonly error: Error }
  | { readonly on: 'sasl-done' }
  /** How far the quorum is. `behind`: it has less than we have seen. */
  | { readonly on: 'synced'; readonly behind: boolean; readonly zxid: bigint }
  /** All credentials that were given are taken. */
  | { readonly on: 'credentials-taken' }
  | { readonly on: 'credentials-refused'; readonly error: Error }
  /** One SetWatches is answered. */
  | { readonly on: 'watches-restored' }
  | { readonly on: 'caught-up' }
  /** Listeners have been told that we are connected. */
  | { readonly on: 'told' }
  | { readonly on: 'disconnected'; readonly error: Error }
  /** The session is gone: by a server's word, or by our own clock. */
  | { readonly on: 'over'; readonly error: Error }
  | { readonly on: 'buried'; readonly error: Error }
  /** No server has served us in a round. `shutOut`: each has, and we had seen something. */
  | {
      readonly on: 'round-failed';
      readonly shutOut: boolean;
      readonly nowMs: number;
      readonly timeoutMs: number;
    }
  /** `keepSession`: it is left to whoever attaches to it. */
  | { readonly on: 'close-asked'; readonly keepSession: boolean }
  | { readonly on: 'close-answered' }
  | { readonly on: 'close-failed' }
  | { readonly on: 'waited-enough' };

export type SessionEffect =
  /** Sends the handshake. `attaches`: to the session that we have. `doubts`: without what we have seen. */
  | { readonly do: 'greet'; readonly attaches: boolean; readonly doubts: boolean }
  /** Writes who we are and what we watch: `introduced` then. */
  | { readonly do: 'introduce' }
  /** Reads that wait are sent along. Only those: a write sent to a server that is silent would be in doubt. */
  | { readonly do: 'let-reads-ride' }
  /** Makes the granted session ours. */
  | { readonly do: 'adopt' }
  /** `sasl-done` or `credentials-refused` then. */
  | { readonly do: 'start-sasl' }
  /** `synced` then. */
  | { readonly do: 'ask-sync' }
  /** What was seen is lost: from now on we have seen that much. */
  | { readonly do: 'forget-view'; readonly zxid: bigint }
  /** Tells the watches what they may have missed, and gives the credentials that came late: `caught-up` then. */
  | { readonly do: 'catch-up'; readonly gap: 'reconnected' | 'expired' | undefined }
  | { readonly do: 'tell'; readonly state: State; readonly error: Error | undefined }
  /** Requests are sent from now on. */
  | { readonly do: 'open' }
  /** Asks the server to close the session: `close-answered` or `close-failed` then. */
  | { readonly do: 'send-close' }
  /** A server with a quorum is looked for, beside the one that has none. */
  | { readonly do: 'search-read-write' }
  /** Ends the connection. `isDone`: all was said, so it need not be reset. */
  | { readonly do: 'drop'; readonly error: Error | undefined; readonly isDone?: boolean }
  | { readonly do: 'forget-session' }
  /** Fails what waits, and tells one-shot watches. */
  | { readonly do: 'bury'; readonly error: Error }
  /** Fails everything that waits. */
  | { readonly do: 'finish' }
  /** A pause of the search ends. */
  | { readonly do: 'hurry' }
  /** Happens next, after what others made happen meanwhile. */
  | { readonly do: 'go-on'; readonly event: SessionEvent };

/** What the session is to do: all but what the machine only puts off. */
export type ShellEffect = Exclude<SessionEffect, { readonly do: 'go-on' }>;
