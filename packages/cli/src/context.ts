import type { Backend, Timing } from 'incumbent';
import type { Finding } from './doctor/finding.ts';
import type { Scratch, Unmeasured } from './doctor/scratch.ts';
import type { EventLog } from './run/events.ts';
import type { Environment, Output, Host as TerminalHost } from './terminal/host.ts';

export type { Environment, Output, SignalName } from './terminal/host.ts';

/** Where elections are held. */
export interface OpenStore {
  /** As one would give it to `--store`, without secrets. */
  readonly url: string;
  readonly origin: '--store' | 'INCUMBENT_STORE' | 'default';
  readonly backend: Backend;
  /** Of a file store: its directory. */
  readonly directory?: string;
  /** Where servers hold it, of which another may serve when one fails. */
  readonly servers?: Servers;
  /**
   * Creates the objects that all elections of the store share, where they are missing.
   * @returns the objects created, such as `the table "incumbent_election"`; undefined: none was
   * missing
   * @throws CommandError that says which role may create them, and how
   */
  prepare?(signal: AbortSignal): Promise<string | undefined>;
  /**
   * Ends the connection, where there is one. Called after every command, even after one that
   * failed.
   */
  close?(): Promise<void>;
}

export interface Examination {
  readonly timing: Timing;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** The election that the user named. */
  readonly election: string | undefined;
}

/** The questions that commands put to the servers of a store, besides its elections. */
export interface Servers {
  /** For `doctor`: findings that need nothing to be created. */
  examine(examination: Examination): Promise<readonly Finding[]>;
  /**
   * For `doctor`: an election to measure on.
   * @param unique a name that is not in use, for elections that can be removed again
   */
  scratch(unique: string, signal: AbortSignal): Promise<Scratch | Unmeasured>;
  /** For `doctor`: how a leader confirms its term, where that is neither a read nor a write. */
  check?(signal: AbortSignal): Promise<unknown>;
  /**
   * The place of an election that is missing because it has never been used, such as `node /a/b`.
   */
  missingPlace?(election: string, signal: AbortSignal): Promise<string | undefined>;
  /** Observers notice when the missing place is created. */
  readonly observesMissing?: true;
  /** A missing place is that of an election that was removed: `reopen` makes it. */
  readonly reopensMissing?: true;
  /** For `run`: fails when what the servers granted is less than `leastMs`. */
  checkLease?(leastMs: number): void;
  /** For `run`: tells how the connection fares. @returns stops telling */
  follow?(events: EventLog): Promise<() => void>;
}

/** How a command wants its store to be opened. */
export interface StoreNeeds {
  /** How long it may take to reach it. */
  readonly timeoutMs: number;
  /** The name of that bound, such as `--timeout`; absent: it has no name. */
  readonly timeoutName?: string;
  /** Gives up. */
  readonly signal: AbortSignal;
  /** `--lease`: where D is the timeout of a session, the one to ask for. */
  readonly lease?: string | undefined;
  /**
   * Servers may be just starting: a server that refuses is asked again until `timeoutMs` is over.
   */
  readonly patient?: true;
  /** Nothing will be held, so a session may last longer than its elections want: it is more patient. */
  readonly asksOnly?: true;
  /** Make what all elections of the store need, such as a chroot. */
  readonly setUp?: true;
}

interface World {
  readonly env: Environment;
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
  /** For the result of the command. */
  readonly stdout: Output;
  /** For people: notes and errors. */
  readonly stderr: Output;
  /**
   * @param url the value of `--store`; undefined: INCUMBENT_STORE or the default
   * @throws CommandError that says which store to use instead, or why it cannot be reached
   */
  openStore(url: string | undefined, needs: StoreNeeds): Promise<OpenStore>;
}

/** The world as a command sees it. Tests replace all of it. */
export interface Context extends World {
  /**
   * Aborted by INT, TERM and HUP, with an `InterruptedError` to be thrown on. Commands that the
   * table marks `handlesSignals` get a signal that never aborts.
   */
  readonly signal: AbortSignal;
}

/** The surroundings of `main`: the process, or a test. */
export interface Host extends World, TerminalHost {}
