// Bundles the live network's page into one folder, and the farm's script and style into another.
// The third argument has the names of signals as JSON, the fourth the constants of path models. The live network's page is a single file;
// the simulator and tables are inserted where it is served
// (library/src/remy_farm/analysis/live_page.py). The farm's script and style are loaded by a page
// that its server renders (services/src/remy_services/web/page/farm.html).

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const [live, farm, signalNames, pathFields] = process.argv.slice(2);
const common = {
  bundle: true,
  minify: true,
  write: false,
  target: "es2022",
  legalComments: "none",
  define: { SIGNAL_NAMES: signalNames, PATH_FIELDS: pathFields },
};

async function text(options) {
  return (await build({ ...common, ...options })).outputFiles[0].text.trim();
}

const preact = { format: "iife", jsx: "automatic", jsxImportSource: "preact" };
const styleOf = (sheet) =>
  text({
    stdin: { contents: `@import "uplot/dist/uPlot.min.css"; @import "./src/base.css"; @import "${sheet}";`, loader: "css", resolveDir: "." },
  });

const worker = await text({ entryPoints: ["src/worker.ts"], format: "iife" });
const script = await text({
  entryPoints: ["src/app.tsx"],
  ...preact,
  plugins: [
    {
      name: "worker-source",
      setup(setting) {
        setting.onResolve({ filter: /^worker-source$/ }, ({ path }) => ({ path, namespace: "worker" }));
        setting.onLoad({ filter: /.*/, namespace: "worker" }, () => ({ contents: worker, loader: "text" }));
      },
    },
  ],
});
const style = await styleOf("./src/style.css");

const hash = (content) => `'sha256-${createHash("sha256").update(content).digest("base64")}'`;
const policy = [
  "default-src 'none'",
  `script-src ${hash(script)} 'wasm-unsafe-eval'`,
  `style-src ${hash(style)}`,
  "worker-src blob:",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");
const parts = { policy, style, script };
const page = readFileSync("template.html", "utf8").replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
if (/<\/script/i.test(script) || /<\/style/i.test(style)) {
  throw new Error("the bundle contains a closing script or style tag");
}
writeFileSync(`${live}/page.html`, page);

writeFileSync(`${farm}/farm.js`, await text({ entryPoints: ["farm/app.tsx"], ...preact }));
writeFileSync(`${farm}/farm.css`, await styleOf("./farm/style.css"));
