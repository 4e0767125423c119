// The rules of prose that a machine can hold: how long a sentence may be, and how it may begin.

export const limits = {
  sentence: 35,
  wished: 25,
  cell: 15,
  columns: 120,
};

const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' });

/**
 * @param {string} text
 * @returns {string[]} its sentences. A full stop that a small letter follows ends none ("e.g. this")
 */
export function sentencesOf(text) {
  const sentences = [];
  for (const { segment } of segmenter.segment(text)) {
    const before = sentences.at(-1);
    const goesOn =
      before !== undefined &&
      (/^["')\]]*\p{Ll}/u.test(segment) || /\b(e\.g|i\.e|cf|vs|etc|no|vol|ch)\.\s*$/i.test(before));
    if (goesOn) sentences[sentences.length - 1] = before + segment;
    else sentences.push(segment);
  }
  return sentences.map((sentence) => sentence.trim()).filter((sentence) => sentence !== '');
}

export function wordsOf(text) {
  return text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

/**
 * @param {import('./blocks.mjs').Block} block
 * @returns {{ rule: 'sentence' | 'opening', sentence: string, why: string }[]} what is not allowed
 */
export function faultsOf(block) {
  if (block.kind === 'heading') return [];
  const faults = [];
  for (const sentence of sentencesOf(block.text)) {
    const words = wordsOf(sentence);
    if (words > limits.sentence) {
      const why = `${words} words; a sentence has at most ${limits.sentence}`;
      faults.push({ rule: 'sentence', sentence, why });
    }
    const opening = /^(Who|Whoever|What)\b(?!['’])/.exec(sentence)?.[1];
    if (opening !== undefined && !/\?\W*$/.test(sentence)) {
      faults.push({ rule: 'opening', sentence, why: `begins with "${opening}"; name the actor` });
    }
  }
  return faults;
}

/**
 * Counts of what is allowed but unwelcome: sentences longer than we wish, and cells that cannot be
 * scanned.
 */
export function countsOf(block) {
  if (block.kind === 'heading') return { sentences: 0, longSentences: 0, cells: 0, longCells: 0 };
  const sentences = sentencesOf(block.text);
  const cell = block.kind === 'cell';
  return {
    sentences: sentences.length,
    longSentences: sentences.filter((each) => wordsOf(each) > limits.wished).length,
    cells: cell ? 1 : 0,
    longCells: cell && wordsOf(block.text) > limits.cell ? 1 : 0,
  };
}
