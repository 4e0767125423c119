/**
 * For the machine, not for us: a shell, a guard or a Node process starts slowly on a machine that
 * is busy with other things. 0.2 s where it is not.
 */
export const startSlackMs = 5_000;
