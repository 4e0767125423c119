/**
 * The events of a seed. Their hash is always kept, so that two runs of a seed can be compared;
 * readable lines are kept when somebody is to read them.
 */
export class Trace {
  static readonly limit = 4_000;
  readonly #lines: string[] = [];
  readonly #readable: boolean;
  readonly #bits = new DataView(new ArrayBuffer(8));
  #hash = 0x811c9dc5;
  #count = 0;

  constructor(readable: boolean) {
    this.#readable = readable;
  }

  /** @param detail called only when somebody reads */
  add(atMs: number, who: string, what: string, detail?: () => string): void {
    this.#count += 1;
    this.#bits.setFloat64(0, atMs);
    this.#mix(this.#bits.getUint32(0));
    this.#mix(this.#bits.getUint32(4));
    for (let i = 0; i < who.length; i += 1) this.#mix(who.charCodeAt(i));
    for (let i = 0; i < what.length; i += 1) this.#mix(what.charCodeAt(i));
    if (!this.#readable) return;
    const line = `${(atMs / 1000).toFixed(6).padStart(13)} s  ${who.padEnd(6)} ${what}`;
    this.#lines.push(detail === undefined ? line : `${line} ${detail()}`);
    if (this.#lines.length > Trace.limit) this.#lines.splice(0, Trace.limit / 2);
  }

  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, '0');
  }

  /** How many entries there were in all. */
  get count(): number {
    return this.#count;
  }

  last(count: number): readonly string[] {
    return this.#lines.slice(-count);
  }

  #mix(value: number): void {
    this.#hash = Math.imul(this.#hash ^ value, 0x01000193);
    this.#hash ^= this.#hash >>> 15;
  }
}
