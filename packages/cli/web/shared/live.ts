/** The values that the command tells (src/web/live-values.ts), as signals. */
import type { Signal } from '@preact/signals';
import { signal } from '@preact/signals';

export type Connection =
  | { readonly state: 'connecting' }
  | { readonly state: 'live' }
  /** The browser tries again by itself. All that is shown is as old as this. */
  | { readonly state: 'lost'; readonly since: Date };

export const connection: Signal<Connection> = signal({ state: 'connecting' });

const values = new Map<string, Signal<unknown>>();
/** All names that have a value. */
export const names: Signal<readonly string[]> = signal([]);

export function live<T>(name: string): Signal<T | undefined> {
  let found = values.get(name);
  if (found === undefined) {
    found = signal(undefined);
    values.set(name, found);
  }
  return found as Signal<T | undefined>;
}

/** The command says that it lives more often than that (src/web/live-values.ts). */
const silentMs = 25_000;
const againMs = 3_000;

export function connect(): void {
  const source = new EventSource('/live');
  let silence = setTimeout(lose, silentMs);
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(lose, silentMs);
    connection.value = { state: 'live' };
  };
  /** A connection that is only silent tells the browser nothing, and one that was refused ends it. */
  function lose(): void {
    clearTimeout(silence);
    source.close();
    if (connection.peek().state !== 'lost') connection.value = { state: 'lost', since: new Date() };
    setTimeout(connect, againMs);
  }
  /** The first event of a connection has all values: what is not in it is gone. */
  let isFirst = true;
  source.addEventListener('beat', heard);
  source.onmessage = ({ data }: MessageEvent<string>) => {
    take(JSON.parse(data), isFirst);
    isFirst = false;
    heard();
  };
  source.onerror = lose;
}

type Entry = readonly [name: string, value?: unknown];

function take(entries: readonly Entry[], isAll: boolean): void {
  const known = new Set(isAll ? [] : names.peek());
  const gone = new Set(isAll ? names.peek() : []);
  for (const [name, value] of entries) {
    if (value === undefined) {
      gone.add(name);
      continue;
    }
    live(name).value = value;
    known.add(name);
    gone.delete(name);
  }
  for (const name of gone) {
    live(name).value = undefined;
    known.delete(name);
  }
  const before = names.peek();
  if (known.size !== before.length || before.some((name) => !known.has(name))) {
    names.value = [...known];
  }
  // Nothing on the page shows them any more.
  for (const name of gone) if (/^(election|shards):/.test(name)) values.delete(name);
}
