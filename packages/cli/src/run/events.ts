/** The events of `run`, on stderr or on `--events-fd`. Stdout belongs to the program. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { DiagnosticEvents, NotElectedReason } from 'incumbent';
import { describeNotElected } from 'incumbent';
import type { Output } from '../context.ts';
import { span } from '../output/span.ts';
import { toJson, visible } from '../terminal/text.ts';
import { isoTime } from '../terminal/time.ts';
import { LineWriter } from './line-writer.ts';

export interface RunEvent {
  /** A name that programs can rely on. */
  readonly event: string;
  /** For people, without a full stop; absent: people do not need this event. */
  readonly sentence?: string;
  readonly fields?: Readonly<Record<string, unknown>>;
}

interface Source {
  readonly election: string;
  readonly seat?: number;
}

export class EventLog {
  readonly #write: (text: string) => void;
  readonly #json: boolean;
  readonly #source: { readonly election: string; readonly candidate: string };
  readonly #hasSeats: boolean;
  /** That of the last term. Undefined: before, or the election has one. */
  #seat: number | undefined;
  readonly #removers: (() => void)[] = [];
  readonly #lines: LineWriter | undefined;
  #lastTrouble = '';

  constructor(
    output: Output,
    options: { readonly json?: true; readonly eventsFd?: number },
    {
      hasSeats = false,
      ...source
    }: { readonly election: string; readonly candidate: string; readonly hasSeats?: boolean },
  ) {
    this.#json = options.json === true;
    this.#source = source;
    this.#hasSeats = hasSeats;
    const fd = options.eventsFd ?? (output === process.stderr ? 2 : undefined);
    if (fd === undefined) {
      this.#write = (text) => output.write(text);
    } else {
      const lines = new LineWriter(fd);
      this.#lines = lines;
      this.#write = (text) => lines.write(text);
    }
  }

  get candidate(): string {
    return this.#source.candidate;
  }

  emit({ event, sentence, fields }: RunEvent): void {
    if (event !== 'trouble') this.#lastTrouble = '';
    if (sentence === undefined && !this.#json) return;
    // Tokens of different seats say nothing of each other.
    const seat = this.#seat !== undefined &&
      fields?.['token'] !== undefined && { seat: this.#seat };
    const line = this.#json
      ? toJson({ time: new Date().toISOString(), event, ...this.#source, ...seat, ...fields })
      : `incumbent: ${visible(sentence ?? '')}`;
    this.#write(`${line}\n`);
  }

  /**
   * Passes on what the library reports about this election.
   * @param programActs whether anything of the program can still do something
   * @param tellsReady whether the program has to become ready
   * @param goesOn what an overrun means
   */
  follow(
    programActs: () => boolean,
    tellsReady = false,
    goesOn = 'the program has not ended',
  ): void {
    this.#on('incumbent:waiting', () => ({ event: 'waiting' }));
    this.#on('incumbent:waiting-for', ({ why }) => ({
      event: 'waiting-for',
      sentence: `waiting for the seat: ${describeNotElected(why)}`,
      fields: { why: whyFields(why) },
    }));
    this.#on('incumbent:won', ({ token, unfenced, seat }) => {
      if (this.#hasSeats) this.#seat = seat;
      return unfenced.length === 0
        ? undefined
        : {
            event: 'taking-over',
            sentence: `won the seat (${this.#words(token)}), taking over from ${unfenced.join(', ')}`,
            fields: { token, unfenced },
          };
    });
    this.#on('incumbent:leading', ({ token }) => ({
      event: 'leading',
      sentence: `leading (${this.#words(token)})`,
      fields: { token },
    }));
    this.#on('incumbent:ready', ({ token }) =>
      // Without --ready-when or --notify it says no more than the line before.
      tellsReady
        ? { event: 'ready', sentence: `ready (token ${token})`, fields: { token } }
        : undefined,
    );
    this.#on('incumbent:unconfirmed', ({ token, remainingMs, error }) => ({
      event: 'unconfirmed',
      sentence:
        `the term could not be confirmed (${describe(error)}), ` +
        `${span(Math.max(0, remainingMs))} of belief left`,
      fields: { token, remainingMs: Math.round(remainingMs), error: describe(error) },
    }));
    this.#on('incumbent:overrun', ({ token, reason }) =>
      // After a freeze the library hears of the end of belief before we hear of the program's.
      programActs()
        ? {
            event: 'overrun',
            sentence: `term ${token} is over (${reason}) and ${goesOn}`,
            fields: { token, reason },
          }
        : undefined,
    );
    this.#on('incumbent:ended', ({ token, reason, released, error }) => ({
      event: 'ended',
      sentence: `term ${token} ended: ${reason}${released ? '' : ', the seat was not given back'}`,
      fields: {
        token,
        reason,
        released,
        ...(error === undefined ? {} : { error: describe(error) }),
      },
    }));
    this.#on('incumbent:takeover-failed', ({ token, error }) => ({
      event: 'takeover-failed',
      sentence: describe(error),
      fields: { token, error: describe(error) },
    }));
    this.#on('incumbent:health', ({ healthy, error }) => ({
      event: healthy ? 'healthy' : 'unhealthy',
      sentence: healthy
        ? 'healthy'
        : `unhealthy${error === undefined ? '' : `: ${describe(error)}`}`,
    }));
    this.#on('incumbent:trouble', ({ what, error }) => {
      this.trouble(what, error);
      return undefined;
    });
  }

  /** The same trouble again and again is one line until something else happens. */
  trouble(what: string, error: unknown): void {
    const kind = `${what}: ${kindOf(error)}`;
    if (kind === this.#lastTrouble) return;
    this.#lastTrouble = kind;
    const reason = describe(error);
    const sentence = `${what}: ${reason}`;
    this.emit({ event: 'trouble', sentence, fields: { what, error: reason } });
  }

  /** Resolves when what was told is written, within bounds. */
  async close(): Promise<void> {
    for (const remove of this.#removers.splice(0)) remove();
    await this.#lines?.end();
  }

  #words(token: bigint): string {
    return this.#seat === undefined ? `token ${token}` : `seat ${this.#seat}, token ${token}`;
  }

  #on<Name extends keyof DiagnosticEvents>(
    name: Name,
    tell: (payload: DiagnosticEvents[Name] & Source) => RunEvent | undefined,
  ): void {
    const listener = (message: unknown) => {
      const payload = message as DiagnosticEvents[Name] & Source;
      if (payload.election !== this.#source.election) return;
      const event = tell(payload);
      if (event !== undefined) this.emit(event);
    };
    subscribe(name, listener);
    this.#removers.push(() => unsubscribe(name, listener));
  }
}

/** As `NotElectedError.why`, with times in ISO 8601 and errors as text. */
export function whyFields(why: NotElectedReason): Readonly<Record<string, unknown>> {
  const fields = Object.entries(why).map(([name, value]) => {
    if (name.endsWith('UnixMs')) return [name.replace('UnixMs', ''), isoTime(value as number)];
    return name === 'cause' || name === 'error' ? ['error', describe(value)] : [name, value];
  });
  return Object.fromEntries(fields) as Record<string, unknown>;
}

/** An error with its causes, on one line. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return error === undefined ? 'no answer' : String(error);
  const cause = error.cause instanceof Error ? describe(error.cause) : '';
  // Some say in their own words already what their cause says.
  return error.message.includes(cause) ? error.message : `${error.message}: ${cause}`;
}

/**
 * The part of an error that stays the same when it happens again: its message may name another file
 * each time.
 */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const kind = 'code' in error ? String(error.code) : error.message;
  return error.cause instanceof Error ? `${kind} ${kindOf(error.cause)}` : kind;
}
