import { resolve } from 'node:path';
import { parseDuration } from 'incumbent';
import type { Context, OpenStore } from '../context.ts';
import { exitCodes, UsageError } from '../failure.ts';
import { openStores } from '../follow/open-stores.ts';
import { StoreFollower } from '../follow/store-follower.ts';
import { lockForRecorder, openToWrite } from '../history/history-file.ts';
import { HistoryWriter } from '../history/history-writer.ts';
import type { RecorderEvents } from '../history/recorder.ts';
import { Recorder } from '../history/recorder.ts';
import { loadSqlite } from '../history/sqlite.ts';
import type { RecordOptions } from '../options.ts';
import { toJson, visible } from '../terminal/text.ts';
import { parseSpanOf } from '../until.ts';

const leastKeepMs = 60_000;

/** Follows the elections of the stores, and writes what it finds, until a signal ends it. */
export async function record(options: RecordOptions, context: Context): Promise<number> {
  const { cwd, signal } = context;
  const keepMs = parseSpanOf('--keep', options.keep);
  if (keepMs < leastKeepMs) {
    throw new UsageError(`--keep ${options.keep}: give 1m or more`);
  }
  const timeoutMs = parseDuration('--timeout', options.timeout);
  const path = resolve(cwd, options.to);
  const sqlite = loadSqlite(cwd);
  // A store that cannot be used is told before there is a file.
  const stores = await openStores(options.store, timeoutMs, context);
  const lock = lockForRecorder(path, sqlite);
  try {
    const database = openToWrite(path, sqlite);
    try {
      const recorder = new Recorder(
        new HistoryWriter(database, keepMs),
        eventsOf(options, path, stores, context),
      );
      await follow(recorder, stores, timeoutMs, signal);
    } finally {
      database.close();
    }
  } finally {
    lock.close();
  }
  signal.throwIfAborted();
  return exitCodes.ok;
}

/** @throws the error that keeps the file from being written */
async function follow(
  recorder: Recorder,
  stores: readonly OpenStore[],
  timeoutMs: number,
  interruption: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const signal = AbortSignal.any([interruption, stop.signal]);
  const running = [
    ...stores.map((open) =>
      new StoreFollower({ open, timeoutMs, signal }, recorder.listenTo(open.url)).run(),
    ),
    recorder.prune(signal),
  ];
  try {
    await Promise.race([Promise.all(running), recorder.failure]);
    await recorder.flush();
    // The last of it may have failed.
    await Promise.race([recorder.failure, Promise.resolve()]);
  } finally {
    stop.abort();
    await Promise.allSettled(running);
  }
}

/** Says what it does: lines for people on stderr, or JSON on stdout. */
function eventsOf(
  { json, keep }: RecordOptions,
  path: string,
  stores: readonly OpenStore[],
  { stdout, stderr }: Context,
): RecorderEvents {
  const tell = (words: string, event: object) => {
    if (json) stdout.write(`${toJson(event)}\n`);
    else stderr.write(`${visible(words)}\n`);
  };
  const urls = stores.map(({ url }) => url);
  tell(`recording ${urls.join(', ')} to ${path}, for ${keep}`, {
    event: 'recording',
    ...{ to: path, stores: urls, keep },
  });
  return {
    onRead: (store) => tell(`${store}: all that it keeps is on file`, { event: 'read', store }),
    onTrouble: (store, error) =>
      tell(`${store}: ${error ?? 'it can be read again'}`, { event: 'store', store, error }),
  };
}
