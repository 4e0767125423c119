import type { IncomingMessage } from 'node:http';

/** The target of a path-style request. */
export interface Target {
  /** `get`, `put`, `head`, `delete`, `list`, `versioning`, or `other`. */
  readonly verb: string;
  readonly bucket: string;
  /** Undefined: the bucket itself. */
  readonly name: string | undefined;
}

export function targetOf(
  { method = '' }: IncomingMessage,
  { pathname, searchParams }: URL,
): Target {
  const [, bucket = '', ...rest] = pathname.split('/');
  const name = rest.map(decodeURIComponent).join('/');
  if (name === '') {
    const verb =
      method === 'HEAD'
        ? 'head'
        : searchParams.has('versioning')
          ? 'versioning'
          : searchParams.get('list-type') === '2'
            ? 'list'
            : 'other';
    return { verb, bucket, name: undefined };
  }
  const verbs: Readonly<Record<string, string>> = {
    GET: 'get',
    PUT: 'put',
    HEAD: 'head',
    DELETE: 'delete',
  };
  return { verb: verbs[method] ?? 'other', bucket, name };
}
