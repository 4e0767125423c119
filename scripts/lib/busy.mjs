import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

const sampleMs = 2_000;

/**
 * Which part of the processors others use, from 0 to 1; what runs at a low priority gives way and does not count.
 * To be asked before anything of ours runs.
 */
export async function busyShare() {
  const before = used();
  await sleep(sampleMs);
  const after = used();
  const all = after.all - before.all;
  return all > 0 ? (after.used - before.used) / all : 0;
}

function used() {
  const sum = { used: 0, all: 0 };
  for (const { times } of cpus()) {
    const { user, sys, irq, nice, idle } = times;
    sum.used += user + sys + irq;
    sum.all += user + sys + irq + nice + idle;
  }
  return sum;
}
