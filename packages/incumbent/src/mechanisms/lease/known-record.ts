import type { LeaseRecord } from '../../record/lease-record.ts';
import { encodeLeaseRecord } from '../../record/lease-record.ts';
import type { Version } from './store.ts';

/** The newest record that a handle has read or written. Nearly every read finds the same one again. */
export class KnownRecord {
  #version: Version | undefined;
  #record: LeaseRecord | undefined;

  learn(version: Version, record: LeaseRecord): void {
    this.#version = version;
    this.#record = record;
  }

  /** The record of that version, which is decoded once. */
  at(version: Version, decode: () => LeaseRecord): LeaseRecord {
    if (this.#record !== undefined && this.#version === version) return this.#record;
    const record = decode();
    this.learn(version, record);
    return record;
  }

  /** No process waits for a renewal: of all that others can see, only the nonce is new. */
  isRenewal(expected: Version, next: LeaseRecord): boolean {
    return (
      this.#record !== undefined &&
      this.#version === expected &&
      encodeLeaseRecord({ ...this.#record, nonce: '' }) ===
        encodeLeaseRecord({ ...next, nonce: '' })
    );
  }
}
