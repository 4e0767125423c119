import { setTimeout as sleep } from 'node:timers/promises';
import { deriveTiming, ElectionError, formatDuration, parseDuration } from 'incumbent';
import { bounded } from '../ask.ts';
import type { Context, OpenStore } from '../context.ts';
import { isScratch } from '../elections.ts';
import { CommandError, exitCodes, UsageError } from '../failure.ts';
import type { ListOptions } from '../options.ts';
import type { ElectionRow } from '../output/election-row.ts';
import {
  asCells,
  asJson,
  byElection,
  countWords,
  electionColumns,
  rowOf,
} from '../output/election-row.ts';
import { Progress } from '../terminal/progress.ts';
import { painter } from '../terminal/style.ts';
import { table } from '../terminal/table.ts';
import { clip, toJson, visible } from '../terminal/text.ts';
import { isoTime, localTime } from '../terminal/time.ts';

const defaultEvery = '2s';
const shortestEveryMs = 100;
/** The share of its time for which `--watch` asks the store, at most. */
const askingShare = 0.2;

export async function list(options: ListOptions, context: Context): Promise<number> {
  const timeoutMs = parseDuration('--timeout', options.timeout);
  const everyMs = pauseIn(options);
  const untilMs = performance.now() + timeoutMs;
  const store = await context.openStore(options.store, {
    ...{ asksOnly: true, timeoutMs, timeoutName: '--timeout', signal: context.signal },
  });
  const surveyor = new Surveyor(store, options, context);
  const first = await surveyor.survey(timeoutMs, Math.max(1, untilMs - performance.now()));
  if (!options.watch) {
    print(first, options, context);
    return exitCodes.ok;
  }
  return watchElections(first, { timeoutMs, everyMs }, surveyor, options, context);
}

function pauseIn({ watch, every }: ListOptions): number {
  if (every !== undefined && !watch) {
    throw new UsageError('--every says how often --watch looks: give --watch too, or leave it out');
  }
  const everyMs = parseDuration('--every', every ?? defaultEvery);
  if (everyMs >= shortestEveryMs) return everyMs;
  throw new UsageError(
    `--every ${every}: the store is asked for everything each time, so give ` +
      `${formatDuration(shortestEveryMs)} or more`,
  );
}

/** Asks a store again and again. So it notices leaders that no longer renew. */
class Surveyor {
  readonly #store: OpenStore;
  readonly #wants: (row: ElectionRow) => boolean;
  readonly #context: Context;
  readonly #memory = new Map<string, unknown>();
  readonly #leaseMs: number;

  constructor(store: OpenStore, options: ListOptions, context: Context) {
    this.#store = store;
    this.#wants = filterOf(options);
    this.#context = context;
    this.#leaseMs = deriveTiming({}, store.backend.limits).leaseMs;
  }

  get url(): string {
    return this.#store.url;
  }

  survey(timeoutMs: number, leftMs: number = timeoutMs): Promise<readonly ElectionRow[]> {
    const { signal, stderr } = this.#context;
    const ask = (until: AbortSignal) => this.#ask(until, new Progress(stderr));
    return bounded(timeoutMs, this.#store.url, signal, ask, leftMs);
  }

  async #ask(signal: AbortSignal, progress: Progress): Promise<readonly ElectionRow[]> {
    const rows: ElectionRow[] = [];
    let read = 0;
    try {
      const summaries = this.#store.backend.survey({ signal, memory: this.#memory });
      for await (const summary of summaries) {
        read += 1;
        progress.update(`${read} elections read`);
        if (isScratch(summary.name)) continue;
        const row = rowOf(summary, this.#leaseMs, Date.now());
        if (this.#wants(row)) rows.push(row);
      }
    } finally {
      progress.end();
    }
    return rows.sort(byElection);
  }
}

function filterOf({ led, vacant, name }: ListOptions): (row: ElectionRow) => boolean {
  const pattern = name === undefined ? undefined : patternOf(name);
  const state = led ? 'led' : vacant ? 'vacant' : undefined;
  return (row) =>
    (pattern === undefined || pattern.test(row.election)) &&
    (state === undefined || row.state === state);
}

/** `*` stands for any characters and `?` for one. The pattern is the whole name. */
function patternOf(glob: string): RegExp {
  const parts = glob.split(/(\*+|\?)/).map((part) => {
    if (part.startsWith('*')) return '.*';
    return part === '?' ? '.' : part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  });
  return new RegExp(`^${parts.join('')}$`, 'su');
}

function print(rows: readonly ElectionRow[], options: ListOptions, context: Context): void {
  const { stdout, stderr } = context;
  if (options.json) {
    for (const row of rows) stdout.write(`${asJson(row)}\n`);
    return;
  }
  if (rows.length === 0) {
    const which = isFiltered(options)
      ? 'no election of this store is such'
      : 'this store holds no election';
    stderr.write(`${which}\n`);
    return;
  }
  stdout.write(`${tableOf(rows, context).join('\n')}\n`);
  if (stdout.isTTY === true) stderr.write(`${countWords(rows)}\n`);
}

function isFiltered({ led, vacant, name }: ListOptions): boolean {
  return led === true || vacant === true || name !== undefined;
}

function tableOf(rows: readonly ElectionRow[], { stdout, env }: Context): readonly string[] {
  const nowUnixMs = Date.now();
  return table(
    electionColumns,
    rows.map((row) => asCells(row, nowUnixMs)),
    painter(stdout, env),
    stdout.isTTY === true ? stdout.columns : undefined,
  );
}

async function watchElections(
  first: readonly ElectionRow[],
  { timeoutMs, everyMs }: { readonly timeoutMs: number; readonly everyMs: number },
  surveyor: Surveyor,
  options: ListOptions,
  context: Context,
): Promise<never> {
  const show =
    context.stdout.isTTY === true && !options.json
      ? new Redrawn(surveyor.url, context)
      : new Changes(options, context);
  show.rows(first);
  let tookMs = 0;
  try {
    for (;;) {
      // A large store is asked less often.
      const pauseMs = Math.max(everyMs, tookMs / askingShare);
      await sleep(pauseMs, undefined, { signal: context.signal }).catch(() => {});
      context.signal.throwIfAborted();
      const beganMs = performance.now();
      try {
        show.rows(await surveyor.survey(timeoutMs));
      } catch (error) {
        context.signal.throwIfAborted();
        // The rows on the screen may be old from here on, so the user is told why.
        if (!mayPass(error)) throw error;
        show.trouble(error);
      }
      tookMs = performance.now() - beganMs;
    }
  } finally {
    show.end();
  }
}

function mayPass(error: unknown): error is Error {
  if (error instanceof ElectionError) return error.retryable;
  return error instanceof CommandError && error.exitCode === exitCodes.storeUnavailable;
}

/** The whole table, drawn in place. */
class Redrawn {
  readonly #url: string;
  readonly #context: Context;
  #shown: readonly ElectionRow[] = [];

  constructor(url: string, context: Context) {
    this.#url = url;
    this.#context = context;
    context.stdout.write('\x1b[?25l');
  }

  rows(rows: readonly ElectionRow[]): void {
    this.#shown = rows;
    this.#draw('');
  }

  trouble(error: Error): void {
    this.#draw(`; this is old: ${visible(error.message)}`);
  }

  end(): void {
    this.#context.stdout.write('\x1b[?25h');
  }

  #draw(trouble: string): void {
    const { stdout } = this.#context;
    const { columns = 80, rows: height = 24 } = stdout;
    const head = `${localTime(Date.now())}  ${visible(this.#url)}  ${countWords(this.#shown)}`;
    const lines = tableOf(this.#shown, this.#context);
    const room = Math.max(2, height - 2);
    const hidden = lines.length - room;
    const shown = hidden > 0 ? [...lines.slice(0, room - 1), `… ${hidden + 1} more`] : lines;
    const all = [clip(`${head}${trouble}`, columns), ...shown];
    // Each line is cleared behind what is new, not before it: nothing flickers.
    stdout.write(`\x1b[H${all.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`);
  }
}

/** A line for every election at first, and then one for every change. */
class Changes {
  readonly #options: ListOptions;
  readonly #context: Context;
  #before: ReadonlyMap<string, string> | undefined;
  #isTroubled = false;

  constructor(options: ListOptions, context: Context) {
    this.#options = options;
    this.#context = context;
  }

  rows(rows: readonly ElectionRow[]): void {
    this.#isTroubled = false;
    const before = this.#before;
    const now = new Map(rows.map((row) => [row.election, asJson(row)]));
    this.#before = now;
    const changed = rows.filter(({ election }) => before?.get(election) !== now.get(election));
    const gone = [...(before?.keys() ?? [])].filter((election) => !now.has(election));
    const time = isoTime(Date.now());
    if (this.#options.json) {
      for (const row of changed) this.#write(toJson({ time, ...row }));
      for (const election of gone) this.#write(toJson({ time, election, state: null }));
      return;
    }
    if (changed.length > 0) for (const line of tableOf(changed, this.#context)) this.#write(line);
    for (const election of gone) this.#write(`${visible(election)} is not listed any more`);
  }

  /** Told once, until the store answers again. */
  trouble(error: Error): void {
    if (this.#isTroubled) return;
    this.#isTroubled = true;
    const { message } = error;
    const code = 'code' in error ? error.code : undefined;
    this.#context.stderr.write(
      this.#options.json
        ? `${toJson({ note: { code, message } })}\n`
        : `incumbent: ${visible(message)}\n`,
    );
  }

  end(): void {}

  #write(line: string): void {
    this.#context.stdout.write(`${line}\n`);
  }
}
