// Calls one function of a TypeScript tool: tsx run.mts TOOL FUNCTION, with the
// arguments as JSON in the file that RADDLE_CALL names.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [path, name] = process.argv.slice(2);
const { data, params } = JSON.parse(readFileSync(process.env.RADDLE_CALL!, "utf8"));
delete process.env.RADDLE_CALL;
process.argv = [process.argv[0], path, name];

const loaded = await import(pathToFileURL(path).href);
const found = [loaded[name], loaded.default?.[name], loaded.default, loaded.default?.default].find((f) => typeof f === "function");
if (!found) {
	console.error(`error: there is no exported function '${name}' in ${path}`);
	process.exit(1);
}
const value = await found(...params.map((p: string) => data[p]));
if (value !== undefined && value !== null) {
	writeFileSync(process.env.LLM_OUTPUT!, typeof value === "object" ? JSON.stringify(value, null, 2) : String(value));
}
