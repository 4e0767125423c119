// Fences of Mermaid become diagrams, drawn in the browser by the script that is part of the site.
export function diagrams(md) {
  const fence = md.renderer.rules.fence;
  md.renderer.rules.fence = (tokens, at, ...rest) => {
    const { info, content } = tokens[at];
    if (info.trim() !== 'mermaid') return fence(tokens, at, ...rest);
    return `<MermaidDiagram code="${encodeURIComponent(content)}" />\n`;
  };
}
