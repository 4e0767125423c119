// The blocks of prose in a Markdown text: what a reader reads in one go.
import MarkdownIt from 'markdown-it';

const markdown = new MarkdownIt({ html: true });

/**
 * @typedef {object} Block
 * @property {'prose' | 'cell' | 'heading'} kind a heading, a heading cell of a table, a cell, or the rest
 * @property {string} text without marks; a piece of code and the address of a link are one word
 * @property {number} line where it begins, counted from 1
 * @property {number} lastLine
 */

/**
 * @param {string} text Markdown
 * @param {number} [firstLine] the line of the file where the text begins
 * @returns {Block[]} code, HTML and front matter are not prose
 */
export function blocksOf(text, firstLine = 1) {
  const blocks = [];
  let around = 'prose';
  let row;
  for (const token of markdown.parse(withoutFrontMatter(text), {})) {
    if (token.type === 'heading_open' || token.type === 'th_open') around = 'heading';
    if (token.type === 'td_open') around = 'cell';
    if (/^(heading|th|td)_close$/.test(token.type)) around = 'prose';
    // The cells of a table do not say where they stand; their row does.
    if (token.type === 'tr_open') row = token.map;
    if (token.type !== 'inline') continue;
    const [from, to] = token.map ?? row;
    const line = firstLine + from;
    const said = spoken(token.children ?? []);
    if (said !== '') blocks.push({ kind: around, text: said, line, lastLine: firstLine + to - 1 });
  }
  return blocks;
}

/** The lines stay, so that the numbers of those that follow stay. */
function withoutFrontMatter(text) {
  const [front] = /^---\n[\s\S]*?\n---\n/.exec(text) ?? [];
  return front === undefined ? text : front.replace(/[^\n]/g, '') + text.slice(front.length);
}

function spoken(children) {
  let said = '';
  for (const child of children) {
    if (child.type === 'text') said += child.content;
    else if (child.type === 'code_inline') said += 'Code';
    else if (child.type === 'softbreak' || child.type === 'hardbreak') said += ' ';
    else if (child.type === 'image') said += child.content;
    else if (child.type === 'html_inline' && /^<br/i.test(child.content)) said += '. ';
  }
  return said.trim();
}
