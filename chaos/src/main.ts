/**
 * `npm run chaos -- SCENARIO`: real processes and real servers that are killed, frozen and cut off.
 * See ../README.md. Ends with 0 when nothing was found, with 1 when something was, with 64 when it was
 * called wrongly.
 */
import { defaultScenario, scenarios } from './scenarios.ts';

process.exitCode = await main(process.argv.slice(2));
// Timers and pipes of what was killed must not keep us.
process.stdout.write('', () => process.exit());

async function main(args: readonly string[]): Promise<number> {
  const [first] = args;
  if (first === 'help' || first === '--help' || first === '-h') {
    console.log(usage());
    return 0;
  }
  const isNamed = first !== undefined && !first.startsWith('-');
  const scenario = scenarios[isNamed ? first : defaultScenario];
  if (scenario === undefined) {
    console.error(`There is no scenario "${first}".\n\n${usage()}`);
    return 64;
  }
  const { run } = await scenario.load();
  return run(isNamed ? args.slice(1) : args);
}

function usage(): string {
  const width = Math.max(...Object.keys(scenarios).map((name) => name.length));
  const lines = Object.entries(scenarios).map(
    ([name, { about }]) => `  ${name.padEnd(width)}  ${about}`,
  );
  return `npm run chaos -- [SCENARIO] [OPTIONS]     default: ${defaultScenario}

${lines.join('\n')}

\`npm run chaos -- SCENARIO --help\` shows its options; \`--short\` is the form for CI.`;
}
