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

export function connect(): void {
  const source = new EventSource('/live');
  /** The first event of a connection has all values: what is not in it is gone. */
  let isFirst = true;
  source.onopen = () => {
    isFirst = true;
  };
  source.onmessage = ({ data }: MessageEvent<string>) => {
    const entries = JSON.parse(data) as (readonly [name: string, value?: unknown])[];
    const known = new Set(isFirst ? [] : names.peek());
    if (isFirst) {
      const told = new Set(entries.map(([name]) => name));
      for (const [name, value] of values) if (!told.has(name)) value.value = undefined;
    }
    isFirst = false;
    for (const [name, value] of entries) {
      live(name).value = value;
      if (value === undefined) known.delete(name);
      else known.add(name);
    }
    if (
      known.size !== names.peek().length ||
      [...known].some((name, at) => names.peek()[at] !== name)
    ) {
      names.value = [...known];
    }
    connection.value = { state: 'live' };
  };
  source.onerror = () => {
    if (connection.peek().state !== 'lost') connection.value = { state: 'lost', since: new Date() };
  };
}
