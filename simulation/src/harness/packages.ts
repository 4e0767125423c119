import { fileURLToPath } from 'node:url';

/** Compiled copies that take the place of `packages/NAME/dist`, by NAME. */
export type Copies = Readonly<Record<string, string>>;

/** @returns where a compiled package lies, by its folder in `packages/` */
export type DistOf = (name: string) => string;

/** Another version of the library, if candidates of two versions are to meet. */
export const besideIncumbent = 'incumbent-beside';

const packages = fileURLToPath(new URL('../../../packages', import.meta.url));

export function distOf(copies: Copies = {}): DistOf {
  return (name) => copies[name] ?? `${packages}/${name}/dist`;
}
