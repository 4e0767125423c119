/** Large packages, which only those install who use them. */
import { createRequire } from 'node:module';
import { join } from 'node:path';

/**
 * That of the working directory, where people have it beside their program; else that beside us.
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
