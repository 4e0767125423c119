/**
 * The newest transaction that a session has seen, and the newest that its watches have been told
 * of.
 */
export class View {
  #lastZxid: bigint;
  #watchZxid: bigint;

  constructor(lastZxid: bigint) {
    this.#lastZxid = lastZxid;
    this.#watchZxid = lastZxid;
  }

  get lastZxid(): bigint {
    return this.#lastZxid;
  }

  /**
   * Stays behind `lastZxid` until all packets of a SetWatches are answered. If the connection ends
   * between two of them, the reply to the first must not hide a change from the watches of the
   * second.
   */
  get watchZxid(): bigint {
    return this.#watchZxid;
  }

  /**
   * Not to be called for replies to credentials, which carry 0, and for notifications, which carry
   * -1.
   * @param hasWatches the connection that shows it has all our watches
   */
  saw(zxid: bigint, hasWatches: boolean): void {
    if (zxid > this.#lastZxid) this.#lastZxid = zxid;
    if (hasWatches) this.#watchZxid = this.#lastZxid;
  }

  /** Begins again at a zxid, because the servers have lost what was seen. */
  forget(zxid: bigint): void {
    this.#lastZxid = zxid;
    this.#watchZxid = zxid;
  }
}
