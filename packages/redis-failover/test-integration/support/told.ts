/** The events of a manager, whether it runs in this process or in another one. */
import type { ManagerEvent } from '../../src/manager/events.ts';
import { monotonicMs, until } from './waiting.ts';

type Plain<T> = T extends bigint
  ? string
  : T extends Error
    ? { readonly name: string; readonly message: string; readonly code?: string }
    : T extends object
      ? { readonly [K in keyof T]: Plain<T[K]> }
      : T;

/** An event as it comes through JSON: bigints are texts, and errors have their message. */
export type ToldEvent = Plain<ManagerEvent> & { readonly atMs: number };
export type ToldType = ToldEvent['type'];
export type Told<Type extends ToldType> = Extract<ToldEvent, { readonly type: Type }>;

export function plain(event: ManagerEvent): object {
  return JSON.parse(
    JSON.stringify(event, (_key, value: unknown) => {
      if (typeof value === 'bigint') return String(value);
      if (!(value instanceof Error)) return value;
      const { name, message, code } = value as Error & { code?: string };
      return { name, message, code };
    }),
  ) as object;
}

/** The events of one manager, in their order. */
export class Story {
  readonly id: string;
  readonly events: ToldEvent[] = [];

  constructor(id: string) {
    this.id = id;
  }

  add(event: object): void {
    this.events.push({ atMs: monotonicMs(), ...event } as ToldEvent);
  }

  all<Type extends ToldType>(type: Type): Told<Type>[] {
    return this.events.filter((event): event is Told<Type> => event.type === type);
  }

  /** Resolves to the first event of that type that `fits`, now or later. */
  async told<Type extends ToldType>(
    type: Type,
    fits: (event: Told<Type>) => boolean = () => true,
  ): Promise<Told<Type>> {
    return until(
      `${this.id} tells "${type}"`,
      () => this.all(type).find(fits),
      () => this.text(),
    );
  }

  text(): string {
    const lines = this.events.map(
      ({ atMs, ...event }) => `${atMs.toFixed(0)} ${JSON.stringify(event)}`,
    );
    return [`--- ${this.id}`, ...lines].join('\n');
  }
}
