/**
 * A scenario as a program: from the words after its name to its exit code, 64 when it was called
 * wrongly.
 */
export type Program = (argv: readonly string[]) => Promise<number>;

/** @param read throws an Error for people, which is printed above `usage` */
export function program<Settings>(
  read: (argv: readonly string[]) => Settings | 'help',
  usage: string,
  run: (settings: Settings) => Promise<number>,
): Program {
  return async (argv) => {
    let settings: Settings | 'help';
    try {
      settings = read(argv);
    } catch (error) {
      console.error(`${(error as Error).message}\n\n${usage}`);
      return 64;
    }
    if (settings !== 'help') return run(settings);
    console.log(usage);
    return 0;
  };
}
