// Blocks of code. Those of Mermaid become diagrams, drawn in the browser by the script that is part
// of the site. Indented ones look like all others; in the API they are examples.

/** A plugin of markdown-it. */
export function fences(md) {
  const { fence } = md.renderer.rules;
  md.renderer.rules.fence = (tokens, at, ...rest) => {
    const { info, content } = tokens[at];
    if (info.trim() !== 'mermaid') return fence(tokens, at, ...rest);
    return `<MermaidDiagram code="${encodeURIComponent(content)}" />\n`;
  };
  md.renderer.rules.code_block = (tokens, at, options, env, self) => {
    tokens[at].info = env.relativePath?.startsWith('reference/api/') ? 'ts' : '';
    return fence(tokens, at, options, env, self);
  };
}
