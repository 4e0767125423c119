/** `node simulation/dist/redis/beside-server.js --steps 2000 --seed 1`: the model beside real servers. */
import { parseArgs } from 'node:util';
import { Random } from '../harness/random.ts';
import { playEpisode } from './beside/play.ts';
import { Tally } from './beside/tally.ts';

/** Then three nodes begin from nothing again, with other settings. */
const episodeSteps = 40;

const { values } = parseArgs({
  options: {
    steps: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    trace: { type: 'boolean', default: false },
  },
});
const wanted = Number(values.steps);
let seed = Number(values.seed);
let steps = 0;
let differences = 0;
const tally = new Tally();
for (; steps < wanted; seed += 1) {
  const drawn = new Random(seed);
  const ofModel = new Random(seed, 1);
  const episode = await playEpisode(
    drawn,
    Math.min(episodeSteps, wanted - steps),
    () => ofModel.next(),
    values.trace ? (line) => process.stdout.write(`  ${line}\n`) : undefined,
  );
  steps += episode.steps;
  tally.add(episode.tally);
  if (episode.differences.length > 0) {
    differences += 1;
    process.stdout.write(`seed ${seed}, after:\n`);
    for (const line of episode.played) process.stdout.write(`  ${line}\n`);
    for (const line of episode.differences) process.stdout.write(`  DIFFERENCE ${line}\n`);
  }
}
for (const line of tally.lines) process.stdout.write(`${line}\n`);
process.stdout.write(`${steps} steps, ${differences} differences\n`);
process.exitCode = differences === 0 ? 0 : 1;
