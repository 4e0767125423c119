/** Asks every 100 ms whether a process is there, and tells when it is not. */
import { monotonicMs } from '../../clock.ts';
import { readArgument, tell } from './parent.ts';

export type FromPoller =
  | { readonly say: 'polling' }
  | { readonly say: 'dead'; readonly atMs: number };

const pid = readArgument<number>();
const say = (message: FromPoller) => tell(message);
const timer = setInterval(() => {
  try {
    process.kill(pid, 0);
  } catch {
    say({ say: 'dead', atMs: monotonicMs() });
    clearInterval(timer);
  }
}, 100);
say({ say: 'polling' });
