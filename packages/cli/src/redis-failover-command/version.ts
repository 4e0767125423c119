import { readFile } from 'node:fs/promises';

/** That of this package. */
export async function readVersion(): Promise<string> {
  const manifest: { version: string } = JSON.parse(
    await readFile(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return manifest.version;
}
