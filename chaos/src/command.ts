/** A program of this folder, from its options to its exit code: 64 when it was called wrongly. */
export async function command<Settings>(
  read: (argv: readonly string[]) => Settings | 'help',
  usage: string,
  run: (settings: Settings) => Promise<number>,
): Promise<void> {
  process.exitCode = await main(read, usage, run);
  // Timers and pipes of what was killed must not keep us.
  process.stdout.write('', () => process.exit());
}

async function main<Settings>(
  read: (argv: readonly string[]) => Settings | 'help',
  usage: string,
  run: (settings: Settings) => Promise<number>,
): Promise<number> {
  let settings: Settings | 'help';
  try {
    settings = read(process.argv.slice(2));
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    return 64;
  }
  if (settings !== 'help') return run(settings);
  console.log(usage);
  return 0;
}
