/** The option `releaseOnCrash`, and its checks. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describeValue } from '../base/candidate.ts';
import { InvalidOptionError } from '../base/errors.ts';
import type { TimingOptions } from '../base/timing.ts';
import type { Estate } from './companion.ts';
import { companionFile } from './companion.ts';
import type { BackendMaker, ElectionBackend } from './contest.ts';
import type { ElectionOptions } from './options.ts';
import { timingNames } from './options.ts';

const example = 'releaseOnCrash: new URL("store.js", import.meta.url)';

/**
 * @returns the election as an heir has to know it; undefined: the option is off
 * @throws InvalidOptionError
 */
export function estateOf(
  options: ElectionOptions<unknown>,
  { giveBackFor }: Pick<ElectionBackend<unknown>, 'giveBackFor'>,
): Estate | undefined {
  const { name, backend, releaseOnCrash = false } = options;
  if (releaseOnCrash === false) return undefined;
  const store = makerOf(releaseOnCrash, backend);
  if (giveBackFor === undefined || backend.kind === 'memory') {
    throw new InvalidOptionError(
      `releaseOnCrash: a dead leader's seat cannot be given back on ${backend.description}. Leave it out`,
    );
  }
  if (options.clock !== undefined) {
    throw new InvalidOptionError(
      'releaseOnCrash is for processes that may die, so it goes by the clocks of the machine: leave out `clock`',
    );
  }
  if (!existsSync(companionFile)) {
    throw new InvalidOptionError(
      `releaseOnCrash starts ${companionFile}, which is missing: a bundle of your service must leave ` +
        'the package `incumbent` out ("external")',
    );
  }
  return { election: name, timing: timingIn(options), store };
}

function makerOf(
  releaseOnCrash: unknown,
  { madeBy, description }: Pick<ElectionOptions<unknown>['backend'], 'madeBy' | 'description'>,
): BackendMaker {
  if (releaseOnCrash === true) {
    if (madeBy !== undefined) return madeBy;
    throw new InvalidOptionError(
      `releaseOnCrash: true cannot make ${description} again in another process, because it has a ` +
        `client of yours. Give the URL of a module whose default export is the backend: ${example}`,
    );
  }
  if (!(releaseOnCrash instanceof URL && releaseOnCrash.protocol === 'file:')) {
    throw new InvalidOptionError(
      `releaseOnCrash is true, or the URL of a file, as in ${example}, not ${describeValue(releaseOnCrash)}`,
    );
  }
  const file = fileURLToPath(releaseOnCrash);
  if (!existsSync(file)) {
    throw new InvalidOptionError(
      `releaseOnCrash: there is no file ${file}. Its default export is the backend, or makes it`,
    );
  }
  return { module: releaseOnCrash.href, name: 'default', args: [] };
}

function timingIn(options: TimingOptions): TimingOptions {
  return Object.fromEntries(Object.entries(options).filter(([name]) => name in timingNames));
}
