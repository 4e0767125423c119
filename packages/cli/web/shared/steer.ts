/**
 * The token comes behind the `#` of the address, which a browser does not send. It is kept for this tab
 * only, and taken out of the address, so that it is in no screenshot and no bookmark.
 */
const key = 'incumbent-token';

function readToken(): string {
  const given = location.hash.slice(1);
  // A place on the page begins with a slash.
  if (given !== '' && !given.startsWith('/')) {
    sessionStorage.setItem(key, given);
    history.replaceState(null, '', location.pathname + location.search);
  }
  return sessionStorage.getItem(key) ?? '';
}

const token = readToken();
export const maySteer: boolean = token !== '';

/** @throws Error with the words of the command */
export async function act<T>(action: object): Promise<T> {
  const response = await fetch('/act', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-incumbent-token': token },
    body: JSON.stringify(action),
  });
  const answer = (await response.json()) as T & { readonly error?: string };
  if (!response.ok) throw new Error(answer.error);
  return answer;
}
