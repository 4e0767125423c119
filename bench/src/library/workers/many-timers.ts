/** The least that so many renewals cost in Node: a timer each, and a write into a Map. */
import { cpuShareDuring } from '../../cpu.ts';
import { readArgument, tell } from './parent.ts';

export interface FromTimers {
  readonly say: 'measured';
  readonly cpuShare: number;
}

const { timers, everyMs, windowMs } = readArgument<{
  timers: number;
  everyMs: number;
  windowMs: number;
}>();
const store = new Map<string, number>();
for (let index = 0; index < timers; index += 1) {
  const name = `election-${index}`;
  setInterval(() => store.set(name, (store.get(name) ?? 0) + 1), everyMs);
}
const message: FromTimers = { say: 'measured', cpuShare: await cpuShareDuring(windowMs) };
tell(message);
