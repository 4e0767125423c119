/** How a run ended: the last line that it prints, which `npm test` reads. */
export interface Sums {
  readonly passed: number;
  readonly failed: number;
  readonly skipped?: number;
}

/** @returns the exit code */
export function tellSums({ passed, failed, skipped = 0 }: Sums): number {
  console.log(`${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`);
  return failed === 0 ? 0 : 1;
}
