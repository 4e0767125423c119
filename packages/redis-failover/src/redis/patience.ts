const steps = 5;

/**
 * Calls `giveUp` once, when this process has waited for `ms`. Time in which the process itself stood
 * still counts as a fifth of `ms` at most: what it did not wait for is nobody else's fault, and
 * what has arrived meanwhile is seen first.
 * @returns cancels it
 */
export function setPatience(ms: number, giveUp: () => void): () => void {
  let left = steps;
  let timer: NodeJS.Timeout | undefined;
  let immediate: NodeJS.Immediate | undefined;
  const arm = () => {
    timer = setTimeout(() => {
      left -= 1;
      if (left > 0) return arm();
      // Timers run before sockets are read.
      immediate = setImmediate(giveUp);
    }, ms / steps);
  };
  arm();
  return () => {
    clearTimeout(timer);
    clearImmediate(immediate);
  };
}
