/**
 * Profiles of the shared configuration of AWS. When the profile is missing, the SDK only complains
 * of the settings that it lacks.
 */
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Machine } from '../url/secrets.ts';
import { readText } from '../url/secrets.ts';
import type { S3Location } from './url.ts';

/** Says that the profile asked for is in no file; undefined: it exists, or none was asked for. */
export async function missingProfile(
  { profile }: Pick<S3Location, 'profile'>,
  { env, cwd }: Machine,
): Promise<string | undefined> {
  const name = profile ?? env['AWS_PROFILE'];
  if (!name) return undefined;
  const home = join(env['HOME'] || homedir(), '.aws');
  const files = [
    env['AWS_CONFIG_FILE'] || join(home, 'config'),
    env['AWS_SHARED_CREDENTIALS_FILE'] || join(home, 'credentials'),
  ];
  for (const file of files) {
    const text = await readText(file, cwd, file).catch(() => '');
    if (sectionsOf(text).includes(name)) return undefined;
  }
  const source = profile === undefined ? 'AWS_PROFILE' : 'profile=';
  return (
    `there is no profile ${JSON.stringify(name)} (${source}) in ${files.join(' or ')}: name one that is ` +
    'there, or none'
  );
}

/** `[profile ci]` and `[ci]` are both `ci`. */
function sectionsOf(text: string): readonly string[] {
  return [...text.matchAll(/^\s*\[\s*(?:profile\s+)?(["']?)([^\]]*?)\1\s*\]/gm)].map(
    ([, , name = '']) => name,
  );
}
