import { monotonicMs, sleep } from './clock.ts';

/** How much of one core this process, with all its threads, takes during the next `windowMs`. */
export async function cpuShareDuring(windowMs: number): Promise<number> {
  const before = process.cpuUsage();
  const startMs = monotonicMs();
  await sleep(windowMs);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e3 / (monotonicMs() - startMs);
}
