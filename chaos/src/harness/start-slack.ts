/**
 * For the machine, not for us: the start of a shell, a guard or a Node process on a machine that does
 * other things as well. 0.2 s where it does not.
 */
export const startSlackMs = 5_000;
