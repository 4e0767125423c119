/** Questions of the page, as they stand in an address. */
import { ActionError } from '../web/page-server.ts';

/** @throws ActionError */
export const storeIndexOf = (query: URLSearchParams): number => wholeNumberOf(query, 'store');

/** @throws ActionError */
export function wholeNumberOf(query: URLSearchParams, name: string): number {
  const text = query.get(name) ?? '';
  if (!/^\d{1,15}$/.test(text)) throw new ActionError(`${name}="${text}" is no whole number`);
  return Number(text);
}
