// Keeps packages of the workspace away from a TypeScript tool. The line above this one says which: "denied" are directories whose packages
// are not used, "allowed" those below them whose packages are.
import module, { register } from "node:module";

const below = (path, dirs) => dirs.some((dir) => path === dir || path.startsWith(dir.endsWith("/") ? dir : dir + "/"));
// tsx itself may lie in the workspace, where that is a home directory: its packages are no tool's choice.
for (const arg of process.execArgv) {
	const at = decodeURIComponent(arg).match(/^(?:file:\/\/)?(.*\/node_modules)\/tsx\//);
	if (at) rules.allowed.push(at[1]);
}
const slashes = (path) => path.replaceAll("\\", "/");
const kept = (path) => !below(slashes(path), rules.denied) || below(slashes(path), rules.allowed);

// What require looks through.
const paths = module._nodeModulePaths;
module._nodeModulePaths = (from) => paths(from).filter(kept);

// What import finds.
const hook = `
	const rules = ${JSON.stringify(rules)};
	const below = ${below};
	export async function resolve(specifier, context, next) {
		const found = await next(specifier, context);
		if (found.url.startsWith("file:") && found.url.includes("/node_modules/")) {
			const path = decodeURIComponent(new URL(found.url).pathname).replace(/^\\/([A-Za-z]:)/, "$1");
			if (below(path, rules.denied) && !below(path, rules.allowed)) {
				throw new Error("the package '" + specifier + "' lies in the workspace, and is not used without consent: " + path);
			}
		}
		return found;
	}`;
register("data:text/javascript," + encodeURIComponent(hook));
