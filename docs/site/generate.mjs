// Makes the pages that are not kept in git.
import { makeApiPages } from './api.mjs';
import { makeCommandPages } from './commands.mjs';
import { makeRepositoryPages } from './repository-pages.mjs';

makeRepositoryPages();
makeCommandPages();
await makeApiPages();
