/** The model of Redis, held to the real server. The long form: simulation/README.md. */
import { redisAvailable } from '@incumbent/servers';
import { describe, expect, test } from 'vitest';
import { Random } from '../src/harness/random.ts';
import { playEpisode } from '../src/redis/beside/play.ts';

const missing = redisAvailable();
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

describe.skipIf(missing !== undefined)('the model of Redis', () => {
  test.each([11, 13])('does what real servers do, in 30 steps drawn from seed %i', async (seed) => {
    const ofModel = new Random(seed, 1);
    const { differences, played } = await playEpisode(new Random(seed), 30, () => ofModel.next());
    expect(differences, played.join('\n')).toEqual([]);
  });
});
