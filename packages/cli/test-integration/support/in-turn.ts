/** A machine that starts dozens of processes at once is slow at each. */
const mostAtOnce = 3;
const waiting: (() => void)[] = [];
let running = 0;

/** Runs `job` when few others of this file run. */
export async function inTurn<T>(job: () => Promise<T>): Promise<T> {
  if (running >= mostAtOnce) await new Promise<void>((resolve) => waiting.push(resolve));
  else running += 1;
  try {
    return await job();
  } finally {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}
