import type { IncomingMessage } from 'node:http';

/**
 * Path and query as the client wrote them, for a `Location` or a request line. The text always
 * begins with a slash, and has only visible ASCII in it. Undefined for `*` and the like.
 */
export function targetOf(request: IncomingMessage): string | undefined {
  // Express cuts the mount point off `url`.
  const { originalUrl } = request as { originalUrl?: unknown };
  let text = typeof originalUrl === 'string' ? originalUrl : (request.url ?? '/');
  // A proxy's form, `GET http://host/path`. The client has chosen that host.
  const absolute = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i.exec(text);
  if (absolute !== null) text = text.slice(absolute[0].length);
  if (text === '' || text.startsWith('?')) text = `/${text}`;
  if (!text.startsWith('/')) return undefined;
  return text.replace(/[^!-~]/g, (char) => encode(char));
}

function encode(char: string): string {
  const code = char.charCodeAt(0);
  // Node reads the request line as Latin-1: one character, one byte.
  return code < 0x100 ? `%${code.toString(16).padStart(2, '0').toUpperCase()}` : '%3F';
}

/** True when the leader's address is the one that this very request came to. */
export function isSelf(request: IncomingMessage, origin: string): boolean {
  const { host } = request.headers;
  const { protocol, host: leaderHost, hostname, port } = new URL(origin);
  if (host !== undefined && host.toLowerCase() === leaderHost) return true;
  const { localAddress, localPort } = request.socket;
  const leaderPort = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
  const address = localAddress?.replace(/^::ffff:(?=[\d.]+$)/, '');
  return localPort === leaderPort && address === hostname.replace(/^\[|\]$/g, '');
}
