// The comments of a TypeScript or JavaScript file, as Markdown texts.
import { parse } from '@babel/parser';

// Comments that speak to a tool and not to a person.
const directive =
  /^\s*(biome-ignore|oxlint-|eslint-|@ts-|v8 ignore|c8 ignore|istanbul|#region|#endregion)/;

/**
 * @param {string} source
 * @param {string} path says whether it is TypeScript
 * @returns {{ text: string, line: number }[]} comments in consecutive lines are one text
 */
export function commentsOf(source, path) {
  const types = ['typescript', 'explicitResourceManagement', 'decorators-legacy'];
  const plugins = /\.[cm]?ts$/.test(path) ? types : [];
  const { comments } = parse(source, {
    sourceType: 'unambiguous',
    allowReturnOutsideFunction: true,
    errorRecovery: true,
    plugins,
  });
  const texts = [];
  let open;
  for (const comment of comments ?? []) {
    const { line, column } = comment.loc.start;
    if (comment.type === 'CommentBlock') {
      open = undefined;
      const lines = comment.value.split('\n').map((each) => each.replace(/^\s*\* ?/, ''));
      texts.push({ text: withoutTags(lines).join('\n'), line });
    } else if (directive.test(comment.value)) {
      open = undefined;
    } else {
      const said = comment.value.replace(/^ /, '');
      if (open?.column === column && open.next === line) {
        open.text += `\n${said}`;
      } else {
        open = { text: said, line, column };
        texts.push(open);
      }
      open.next = line + 1;
    }
  }
  return texts;
}

/** A tag of JSDoc begins a paragraph of its own; its type and the names that it links are no words. */
function withoutTags(lines) {
  return lines.map((line) => {
    const tag = /^@(\w+)\s*(\{[^@]*?\}\s*)?/.exec(line);
    const rest = tag === null ? line : `- ${line.slice(tag[0].length)}`;
    return rest.replace(/\{@link(?:code|plain)?\s+([^}\s|]+)[^}]*\}/g, '`$1`');
  });
}
