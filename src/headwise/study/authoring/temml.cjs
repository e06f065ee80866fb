// Reads [[tex, display], ...] as JSON and writes [{mathml} or {error}, ...]. node temml.cjs PATH-OF-TEMML
const temml = require(require('path').resolve(process.argv[2], 'dist', 'temml.cjs'));
let given = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', (part) => { given += part; });
process.stdin.on('end', () => {
  const made = JSON.parse(given).map(([tex, display]) => {
    try {
      return { mathml: temml.renderToString(tex, { displayMode: display, throwOnError: true, trust: false }) };
    } catch (error) {
      return { error: error.message };
    }
  });
  process.stdout.write(JSON.stringify(made));
});
