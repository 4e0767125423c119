import { onTestFinished } from 'vitest';

/** Collects the warnings of Node.js until the test is over. Wait for a turn before you look. */
export function collectWarnings(): readonly Error[] {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  return warnings;
}
