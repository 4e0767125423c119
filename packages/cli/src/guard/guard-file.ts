import { fileURLToPath } from 'node:url';

export const guardFile: string = fileURLToPath(new URL('../../guard/guard.cjs', import.meta.url));
