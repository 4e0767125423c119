/** A request that the server answers with an error code. */
export class Refusal extends Error {
  override readonly name: string = 'Refusal';
  readonly code: number;

  constructor(code: number) {
    super(`refused with ${code}`);
    this.code = code;
  }
}
