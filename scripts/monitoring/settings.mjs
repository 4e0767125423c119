// The durations that alerts depend on.
import { createElection, parseDuration } from 'incumbent';
import { memory } from 'incumbent/memory';

/**
 * @param {{ lease?: string, scrape?: string }} [durations] the lease of the elections, and the time
 * between two scrapes of one process
 */
export function settingsFor({ lease = '15s', scrape = '10s' } = {}) {
  const { timing } = createElection({ name: 'bound', backend: memory(), lease });
  const { leaseMs, clockDrift, pollEveryMs, operationTimeoutMs } = timing;
  // As docs/design/promises.md has it for a crash on a lease. Jitter is less than another poll.
  const boundMs = leaseMs * (1 + clockDrift) + 2 * pollEveryMs + 3 * operationTimeoutMs;
  const scrapeSeconds = Math.ceil(parseDuration('--scrape', scrape) / 1_000);
  const boundSeconds = Math.ceil(boundMs / 1_000);
  return {
    leaseSeconds: leaseMs / 1_000,
    scrapeSeconds,
    /** After a crash, some candidate leads within this. */
    boundSeconds,
    /** The new leader is seen a scrape later than it leads. */
    vacancySeconds: boundSeconds + scrapeSeconds,
    /** A sample is never older, unless its process is gone. */
    settledSeconds: scrapeSeconds + Math.max(1, Math.ceil(scrapeSeconds / 2)),
    ruleSeconds: Math.min(5, scrapeSeconds),
  };
}
