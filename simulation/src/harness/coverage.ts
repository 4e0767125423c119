/** Counts of the events in the seeds. A schedule that never occurred was not tested. */
export class Coverage {
  readonly counts: Map<string, number> = new Map();

  count(what: string, times: number = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + times);
  }

  add(other: Iterable<readonly [string, number]>): void {
    for (const [what, times] of other) this.count(what, times);
  }

  get(what: string): number {
    return this.counts.get(what) ?? 0;
  }
}
