import { defineConfig } from 'vitepress';
import { charts } from '../site/charts.mjs';
import { fences } from '../site/fences.mjs';
import { repositoryLinks } from '../site/links.mjs';
import { sidebar } from '../site/sidebar.mjs';
import { slugOf } from '../site/slug.mjs';

export default defineConfig({
  title: 'incumbent',
  description: 'Leader election for Node.js, over the store you already run',
  lang: 'en',
  // `npm run docs -- --base /incumbent/`, for a site that is not at the root of its host.
  base: process.env.DOCS_BASE ?? '/',
  head: [
    [
      'link',
      { rel: 'icon', type: 'image/svg+xml', href: `${process.env.DOCS_BASE ?? '/'}logo.svg` },
    ],
  ],
  srcExclude: ['site/**', 'test/**'],
  ignoreDeadLinks: false,
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    languageAlias: { mts: 'ts' },
    anchor: { slugify: slugOf },
    config(md) {
      md.use(repositoryLinks);
      md.use(charts);
      md.use(fences);
    },
  },
  themeConfig: {
    logo: '/logo.svg',
    search: {
      provider: 'local',
      options: {
        // A word of the question may be missing on the page that answers it, but not in its title.
        miniSearch: { searchOptions: { boost: { title: 6, titles: 2, text: 1 } } },
      },
    },
    nav: [
      { text: 'Start', link: '/start/' },
      { text: 'Guides', link: '/guides/cron-that-runs-once' },
      { text: 'Stores', link: '/stores/' },
      { text: 'Reference', link: '/reference/cli' },
    ],
    sidebar,
    outline: { level: [2, 3] },
    docFooter: { prev: 'Before', next: 'Next' },
  },
  vite: {
    // Mermaid is one large part, loaded by the pages that have a diagram.
    build: { chunkSizeWarningLimit: 3000 },
  },
  transformPageData(page) {
    if (page.relativePath.startsWith('reference/api/')) page.frontmatter.outline ??= [2, 3];
    // The API and the commands have a page of their own kind: no neighbours.
    if (/^(reference\/(api|commands)|repository)\//.test(page.relativePath)) {
      page.frontmatter.prev ??= false;
      page.frontmatter.next ??= false;
    }
  },
});
