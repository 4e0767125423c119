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
   * Makes what all elections of the store share, where it is missing.
   * @returns what was made, such as `the table "incumbent_election"`; undefined: nothing was missing
   * @throws CommandError that says who may make it, and how
   */
  prepare?(signal: AbortSignal): Promise<string | undefined>;
  /**
   * Names of elections, as far as one short look finds them; also of some that nobody has led.
   * Undefined: we may not look. Absent: the store cannot tell.
   */
  elections?(beside: string, signal: AbortSignal): Promise<readonly string[] | undefined>;
  /** Ends the connection, where there is one. Called after every command, whatever became of it. */
  close?(): Promise<void>;
}

export interface Examination {
  readonly timing: Timing;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** The one that was named. */
  readonly election: string | undefined;
}

/** What commands ask of the servers of a store, besides its elections. */
export interface Servers {
  /** For `doctor`: what there is to see before anything is made. */
  examine(examination: Examination): Promise<readonly Finding[]>;
  /**
   * For `doctor`: an election to measure on.
   * @param unique a name that nobody has, for elections that can be removed again
   */
  scratch(unique: string, signal: AbortSignal): Promise<Scratch | Unmeasured>;
  /** For `doctor`: how a leader confirms its term, where that is neither a read nor a write. */
  check?(signal: AbortSignal): Promise<unknown>;
  /** What is not there of an election that nobody has used yet, such as `node /a/b`. */
  missingPlace?(election: string, signal: AbortSignal): Promise<string | undefined>;
  /** Observers see when what is missing is made. */
  readonly observesMissing?: true;
  /** For `run`: fails when what the servers granted is less than `leastMs`. */
  checkLease?(leastMs: number): void;
  /** For `run`: tells how the connection fares. @returns stops telling */
  follow?(events: EventLog): Promise<() => void>;
}

/** How a command wants its store to be opened. */
export interface StoreNeeds {
  /** How long it may take to reach it. */
  readonly timeoutMs: number;
  /** What that bound is called, such as `--timeout`; absent: it has no name. */
  readonly timeoutName?: string;
  /** Gives up. */
  readonly signal: AbortSignal;
  /** `--lease`: where D is the timeout of a session, the one to ask for. */
  readonly lease?: string | undefined;
  /** Servers may be just starting: one that refuses is asked again until `timeoutMs` is over. */
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
  /** For what was asked for. */
  readonly stdout: Output;
  /** For people: notes and errors. */
  readonly stderr: Output;
  /**
   * @param url what `--store` says; undefined: INCUMBENT_STORE or the default
   * @throws CommandError that says which store to use instead, or why it cannot be reached
   */
  openStore(url: string | undefined, needs: StoreNeeds): Promise<OpenStore>;
}

/** What a command has of the world. Tests replace all of it. */
export interface Context extends World {
  /**
   * Aborted by INT, TERM and HUP, with an `InterruptedError` to be thrown on. Commands that the
   * table marks `handlesSignals` get one that never aborts.
   */
  readonly signal: AbortSignal;
}

/** What `main` runs in: the process, or a test. */
export interface Host extends World, TerminalHost {}
