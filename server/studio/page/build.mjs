// Bundles the studio into the folder that the server embeds, or into the folder of the first argument.
import { build } from "esbuild";
import { cp, mkdir } from "node:fs/promises";

const out = process.argv[2] ?? "../dist";
await mkdir(out, { recursive: true });
await build({
  entryPoints: ["src/main.tsx", "src/style.css"],
  entryNames: "studio",
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "eof",
  logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) await cp("src/" + name, out + "/" + name);
