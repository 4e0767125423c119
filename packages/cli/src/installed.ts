/** Large packages that we do not depend on: users install those that they need. */
import { createRequire } from 'node:module';
import { join } from 'node:path';

/**
 * The copy in the working directory, where it stands beside the user's program; else the one beside
 * us.
 * @returns undefined: it is in neither place
 */
export function requireInstalled(packageName: string, cwd: string, beside: string): unknown {
  for (const place of [join(cwd, 'package.json'), beside]) {
    const require = createRequire(place);
    try {
      require.resolve(packageName);
    } catch {
      continue;
    }
    return require(packageName);
  }
  return undefined;
}
