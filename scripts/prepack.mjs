// Runs in a package of the work tree before `npm pack` and `npm publish`, and refuses: what is published is bundled.
console.error(
  'This folder holds the package as it is developed, and not as it is published. Run `npm run stage` in the ' +
    'root of the repository. Then run npm in the folder `packed` beside this package.json.',
);
process.exitCode = 1;
