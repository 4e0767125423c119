/**
 * The states of a session, its events, and its effects. `session-machine.ts` decides what follows
 * from what.
 *
 *     connecting ──► connected ──► suspended ──► connected (same session)
 *                        ▲              │
 *                        └── expired ◄──┘        (then a new session)
 *
 * A connection goes one way: opening → greeting → (SASL) → (doubting) → introducing →
 * authenticating → catching up → serving.
 */
import type { State } from '../state.ts';

/** The state that listeners have heard last, while no server serves. */
export type Away = Extract<State, 'connecting' | 'suspended' | 'expired'>;

/**
 * The session that the next handshake names. `provisional`: a server without a quorum gave it, and
 * no other server knows it. `known`: a server with a quorum knows it.
 */
export type Identity = 'none' | 'provisional' | 'known';

/** How many answers to our SetWatches are still to come. */
export interface Introduced {
  readonly unrestored: number;
}

export interface Granted {
  /** Whether the server has no quorum. */
  readonly readOnly: boolean;
}

/** The state of the only connection. */
export type Link =
  | { readonly at: 'none' }
  | { readonly at: 'opening' }
  /**
   * The handshake is sent, and nothing behind it: SASL, or a doubt, needs round trips of its own.
   */
  | { readonly at: 'greeting' }
  /**
   * Credentials and watches are sent behind the handshake. `taken`: all credentials are accepted,
   * although the handshake is not answered.
   */
  | ({ readonly at: 'greeting-at-once'; readonly taken: boolean } & Introduced)
  | ({ readonly at: 'sasl' } & Granted)
  /** The server is asked how far its quorum has come. */
  | ({ readonly at: 'doubting' } & Granted)
  /** Credentials and watches are being written. */
  | ({ readonly at: 'introducing' } & Granted)
  /** They are written, and some credentials are not answered. */
  | ({ readonly at: 'authenticating' } & Granted & Introduced)
  /** Everything is answered, and the watches are told of the gap. */
  | ({ readonly at: 'catching-up' } & Granted & Introduced);

/**
 * Whether the servers may have lost their data: then they shut us out, as if they lagged behind.
 * `sinceMs`: since when every server of every round did, in an expired session. `asks`: this round
 * asks without naming the zxid that we have seen.
 */
export interface Doubt {
  readonly sinceMs: number | undefined;
  readonly asks: boolean;
}

/**
 * `asked`: the session is to be closed on a server. `sent`: a server was told, and has not
 * answered.
 */
export type Ending = 'no' | 'asked' | 'sent';

export type SessionAt =
  /** No server serves. The client looks for one, or does the handshake. */
  | {
      readonly at: 'seeking';
      readonly told: Away;
      readonly identity: Identity;
      readonly link: Link;
      readonly doubt: Doubt;
      readonly ending: Ending;
    }
  /**
   * Requests are answered. `isOpen`: they are sent, because listeners have heard of the connection.
   */
  | ({
      readonly at: 'serving';
      readonly identity: Exclude<Identity, 'none'>;
      readonly isOpen: boolean;
      readonly ending: Ending;
    } & Granted &
      Introduced)
  /** A server refuses the credentials. Only `closed` can follow. */
  | { readonly at: 'refused' }
  | { readonly at: 'closed' };

export type SessionEvent =
  /** A server is tried. */
  | { readonly on: 'opening' }
  /** Bytes may be written. */
  | { readonly on: 'opened' }
  /**
   * Credentials and watches were written. `taken`: there are no credentials that a server would
   * have to accept.
   */
  | { readonly on: 'introduced'; readonly taken: boolean; readonly watches: number }
  /** The server grants a session. `isOurs`: the one that was asked for. */
  | ({ readonly on: 'granted'; readonly isOurs: boolean } & Granted)
  /** The server gives no session. */
  | { readonly on: 'not-granted'; readonly readOnly: boolean; readonly error: Error }
  | { readonly on: 'sasl-done' }
  /** How far the quorum has come. `behind`: not as far as we have seen. */
  | { readonly on: 'synced'; readonly behind: boolean; readonly zxid: bigint }
  /** All credentials that were sent are accepted. */
  | { readonly on: 'credentials-taken' }
  | { readonly on: 'credentials-refused'; readonly error: Error }
  /** One SetWatches is answered. */
  | { readonly on: 'watches-restored' }
  | { readonly on: 'caught-up' }
  /** Listeners have heard that the client is connected. */
  | { readonly on: 'told' }
  | { readonly on: 'disconnected'; readonly error: Error }
  /** The session is gone, as a server said or by our own clock. */
  | { readonly on: 'over'; readonly error: Error }
  | { readonly on: 'buried'; readonly error: Error }
  /**
   * No server has served in a round. `shutOut`: all of them have shut us out, and we had seen
   * something.
   */
  | {
      readonly on: 'round-failed';
      readonly shutOut: boolean;
      readonly nowMs: number;
      readonly timeoutMs: number;
    }
  /** `keepSession`: the session is left to another client. */
  | { readonly on: 'close-asked'; readonly keepSession: boolean }
  | { readonly on: 'close-answered' }
  | { readonly on: 'close-failed' }
  | { readonly on: 'waited-enough' };

export type SessionEffect =
  /**
   * Sends the handshake. `attaches`: to the present session. `doubts`: without the zxid that we
   * have seen.
   */
  | { readonly do: 'greet'; readonly attaches: boolean; readonly doubts: boolean }
  /** Writes credentials and watches. `introduced` follows. */
  | { readonly do: 'introduce' }
  /**
   * Sends waiting reads along. Only reads: a write that was sent to a silent server would be in
   * doubt.
   */
  | { readonly do: 'let-reads-ride' }
  /** Adopts the granted session. */
  | { readonly do: 'adopt' }
  /** `sasl-done` or `credentials-refused` follows. */
  | { readonly do: 'start-sasl' }
  /** `synced` follows. */
  | { readonly do: 'ask-sync' }
  /** The servers have lost what we have seen, so the view begins again at their zxid. */
  | { readonly do: 'forget-view'; readonly zxid: bigint }
  /**
   * Tells the watches what they may have missed, and sends the credentials that came late.
   * `caught-up` follows.
   */
  | { readonly do: 'catch-up'; readonly gap: 'reconnected' | 'expired' | undefined }
  | { readonly do: 'tell'; readonly state: State; readonly error: Error | undefined }
  /** Sends requests from now on. */
  | { readonly do: 'open' }
  /** Asks the server to close the session. `close-answered` or `close-failed` follows. */
  | { readonly do: 'send-close' }
  /** Looks for a server with a quorum, beside the present one without. */
  | { readonly do: 'search-read-write' }
  /** Ends the connection. `isDone`: nothing is left to send, so it need not be reset. */
  | { readonly do: 'drop'; readonly error: Error | undefined; readonly isDone?: boolean }
  | { readonly do: 'forget-session' }
  /** Fails the waiting calls, and tells the one-shot watches. */
  | { readonly do: 'bury'; readonly error: Error }
  /** Fails everything that waits. */
  | { readonly do: 'finish' }
  /** Ends a pause of the search. */
  | { readonly do: 'hurry' }
  /** The next event, after those that others have caused meanwhile. */
  | { readonly do: 'go-on'; readonly event: SessionEvent };

/**
 * The effects that the session carries out: all except the events that the machine itself
 * postpones.
 */
export type ShellEffect = Exclude<SessionEffect, { readonly do: 'go-on' }>;
