import type { Clock, Timer } from '@incumbent/zookeeper';
import { systemClock } from '../clock.ts';

const steps = 5;

/**
 * A timeout that is fair to the other side. Calls `giveUp` once, when this process has waited for
 * `ms`. Time in which the process was suspended counts as at most a fifth of `ms`: the other side
 * is not to blame for it. Answers that arrived meanwhile are read first.
 * @returns cancels it
 */
export function setPatience(
  ms: number,
  giveUp: () => void,
  clock: Clock = systemClock,
): () => void {
  let left = steps;
  let timer: Timer | undefined;
  let immediate: NodeJS.Immediate | undefined;
  const arm = () => {
    timer = clock.setTimer(() => {
      left -= 1;
      if (left > 0) return arm();
      if (clock !== systemClock) return giveUp();
      // Timers run before sockets are read.
      immediate = setImmediate(giveUp);
    }, ms / steps);
  };
  arm();
  return () => {
    timer?.cancel();
    clearImmediate(immediate);
  };
}
