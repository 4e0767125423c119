/** Each client that is written in JavaScript gives this to the process of a candidate. */
export interface Candidate {
  /** Resolves when it leads. */
  campaign(election: string): Promise<Led>;
}

export interface Led {
  readonly token: string | null;
  /** Resolves when its place is gone. */
  resign(): Promise<void>;
}

export type OpenCandidate = (port: number, sessionTimeoutMs: number) => Promise<Candidate>;
