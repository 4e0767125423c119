/** Tells when a name that does not begin with a dot has appeared in a directory. */
import { watch } from 'node:fs';
import { monotonicMs } from '../../clock.ts';
import { readArgument, tell } from './parent.ts';

export type FromWatcher =
  | { readonly say: 'watching' }
  | { readonly say: 'seen'; readonly atMs: number };

const seen = new Set<string>();
watch(readArgument<string>(), (_event, name) => {
  if (name === null || name.startsWith('.') || seen.has(name)) return;
  seen.add(name);
  const message: FromWatcher = { say: 'seen', atMs: monotonicMs() };
  tell(message);
});
const watching: FromWatcher = { say: 'watching' };
tell(watching);
