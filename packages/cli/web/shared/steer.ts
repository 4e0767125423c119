/**
 * The token comes behind the `#` of the address, which a browser does not send. It is kept for this tab
 * only, and taken out of the address, so that it is in no screenshot and no bookmark.
 */
const key = 'incumbent-token';

function readToken(): string {
  const given = location.hash.slice(1);
  if (given !== '') {
    sessionStorage.setItem(key, given);
    history.replaceState(null, '', location.pathname + location.search);
  }
  return sessionStorage.getItem(key) ?? '';
}

const token = readToken();
export const maySteer: boolean = token !== '';

/** @throws Error with the words of the command */
export async function act(action: object): Promise<void> {
  const response = await fetch('/act', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-incumbent-token': token },
    body: JSON.stringify(action),
  });
  if (response.ok) return;
  const { error } = (await response.json()) as { error: string };
  throw new Error(error);
}
