// Sentences and lines that may break a rule of prose, each with its reason. One that no longer stands
// where it is said to stand is a fault, too.

/**
 * @type {{ path: string, start: string, reason: string }[]} `start`: how the sentence or the line
 *   begins, without marks; `reason`: why it cannot be written otherwise
 */
export const exceptions = [];
