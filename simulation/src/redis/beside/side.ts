import type { Step } from './steps.ts';

/** The model or the servers, for what is told of both alike. */
export interface Side {
  /** Without waiting for what follows from it. @returns the reply of a command */
  act(step: Step): Promise<string>;
  /** The fields of INFO. */
  info(node: number): Promise<ReadonlyMap<string, string>>;
  /** Waits until INFO says so. Rejects when it does not. */
  until(node: number, what: string, says: Says): Promise<void>;
}

export type Says = (info: ReadonlyMap<string, string>) => boolean;

export function parseInfo(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split('\r\n').map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1)] as const;
    }),
  );
}
