/** Whether tests must be skipped for want of a server. Where everything must run that is a failure. */
export function isMissing(reason: string | undefined): boolean {
  if (reason === undefined) return false;
  if (process.env['CI'] === 'true') throw new Error(reason);
  console.log(`skipped: ${reason}`);
  return true;
}
