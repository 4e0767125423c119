import { InvalidArgumentError } from './errors.ts';

/**
 * Refuses a path that the server would refuse. A path is absolute, and has no empty, `.` or `..`
 * component, no trailing slash, and none of the characters that `PathUtils.validatePath` refuses.
 * @param sequential the server appends digits, so a trailing slash is allowed
 * @throws InvalidArgumentError
 */
export function checkPath(path: string, sequential = false): void {
  if (typeof path !== 'string') {
    throw new InvalidArgumentError(`a path is a string, not ${typeof path}`);
  }
  const why = flawOf(sequential ? `${path}1` : path);
  if (why !== undefined) {
    throw new InvalidArgumentError(`the path ${JSON.stringify(path)} ${why}`, { path });
  }
}

function flawOf(path: string): string | undefined {
  const { length } = path;
  if (length === 0) return 'is empty; the root is "/"';
  if (path.charCodeAt(0) !== 47) return 'is relative; a path begins with "/"';
  if (length === 1) return undefined;
  if (path.charCodeAt(length - 1) === 47) return 'ends with "/"';
  let componentStart = 1;
  for (let i = 1; i <= length; i += 1) {
    const unit = i === length ? 47 : path.charCodeAt(i);
    if (unit === 47) {
      const component = i - componentStart;
      if (component === 0) return 'has an empty component ("//")';
      if (component <= 2 && path.charCodeAt(componentStart) === 46) {
        if (component === 1) return 'has a component "."';
        if (path.charCodeAt(componentStart + 1) === 46) return 'has a component ".."';
      }
      componentStart = i + 1;
    } else if (unit < 32 || (unit > 126 && isRefused(unit))) {
      return `has the character U+${unit.toString(16).padStart(4, '0')} at ${i}, which is not allowed`;
    }
  }
  return undefined;
}

/**
 * Controls, surrogates, the private use area and specials: the characters that the server refuses.
 */
function isRefused(unit: number): boolean {
  return (unit >= 0x7f && unit <= 0x9f) || (unit >= 0xd800 && unit <= 0xf8ff) || unit >= 0xfff0;
}

export function parentOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash <= 0 ? '/' : path.slice(0, slash);
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

export function join(parent: string, name: string): string {
  return parent === '/' ? `/${name}` : `${parent}/${name}`;
}

/** A prefix of every path, which the user does not see. */
export class Chroot {
  /** Empty without a chroot. */
  readonly prefix: string;

  constructor(prefix: string) {
    this.prefix = prefix === '/' ? '' : prefix;
  }

  /** The path on the server. */
  toServer(path: string): string {
    if (this.prefix === '') return path;
    return path === '/' ? this.prefix : this.prefix + path;
  }

  /** Whether a path of the server is the chroot or lies below it. */
  has(path: string): boolean {
    const { prefix } = this;
    if (!path.startsWith(prefix)) return false;
    return path.length === prefix.length || path.charCodeAt(prefix.length) === 47;
  }

  /** The path as the user sees it. A path outside of the chroot stays as it is. */
  toUser(path: string): string {
    const { prefix } = this;
    if (prefix === '' || !this.has(path)) return path;
    return path.length === prefix.length ? '/' : path.slice(prefix.length);
  }
}
