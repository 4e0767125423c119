/** Which machine this is, as far as others can compare it. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';

/** The entries of a candidate's metadata that say how its service is to be fenced. */
export const metadataKeys = {
  /** The name of its machine. */
  host: 'service-host',
  /** A digest of `/etc/machine-id`. Cloned machines often have one name and different numbers. */
  machine: 'service-machine',
  /** `pid`: a guard kills the service when its agent is gone. Else `none`. */
  guard: 'service-guard',
  /** `done`: `become-active` has succeeded in this term. Else `none`. */
  activation: 'service-activation',
} as const;

export interface Machine {
  readonly host: string;
  /** Undefined where there is no machine-id. */
  readonly digest: string | undefined;
}

export function thisMachine(read: (path: string) => string = readText): Machine {
  return { host: hostname(), digest: digestOf(read) };
}

/** The number itself is not for others (machine-id(5)). kill-listener.ts computes the same. */
function digestOf(read: (path: string) => string): string | undefined {
  try {
    const id = read('/etc/machine-id').trim();
    if (id === '') return undefined;
    return createHash('sha256').update(`${id} incumbent`).digest('hex').slice(0, 32);
  } catch {
    return undefined;
  }
}

function readText(path: string): string {
  return readFileSync(path, 'utf8');
}

/** The metadata of a candidate on this machine. */
export function machineMetadata({ host, digest }: Machine): Readonly<Record<string, string>> {
  return {
    [metadataKeys.host]: host,
    ...(digest === undefined ? {} : { [metadataKeys.machine]: digest }),
  };
}

/** Whether a leader with this metadata ran here. A fact that only one side knows is not compared. */
export function isOnThis(
  { host, digest }: Machine,
  metadata: Readonly<Record<string, string>>,
): boolean {
  const told = metadata[metadataKeys.machine];
  return (
    metadata[metadataKeys.host] === host &&
    (told === undefined || digest === undefined || told === digest)
  );
}
