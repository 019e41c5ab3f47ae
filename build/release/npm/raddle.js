#!/usr/bin/env node
// Starts the program of the package for this platform. Nothing is downloaded.
'use strict'

const { spawn } = require('node:child_process')
const path = require('node:path')

const main = require('../package.json')
const platform = `${process.platform}-${process.arch}`
const name = `${main.name}-${platform}`

function findProgram() {
	if (!(name in main.optionalDependencies)) {
		throw new Error(`there is no raddle for ${platform}. Build it with Go: go install raddle.dev/cmd/raddle@latest`)
	}
	let manifest
	try {
		manifest = require.resolve(`${name}/package.json`)
	} catch {
		throw new Error(`the package ${name} is missing. It is an optional dependency of ${main.name}: install without --omit=optional, and not from a node_modules of another platform`)
	}
	if (require(manifest).version !== main.version) {
		throw new Error(`${name} has another version than ${main.name} (${main.version}): install again`)
	}
	return path.join(path.dirname(manifest), 'bin', process.platform === 'win32' ? 'raddle.exe' : 'raddle')
}

function start(program, args) {
	if (typeof process.execve === 'function' && process.platform !== 'win32') {
		try {
			process.execve(program, [program, ...args], process.env) // no process stays between the terminal and raddle
		} catch {
			// an option of Node may forbid it
		}
	}
	const child = spawn(program, args, { stdio: 'inherit' })
	const signals = process.platform === 'win32' ? ['SIGINT', 'SIGBREAK'] : ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']
	for (const signal of signals) {
		// The terminal sends its signals to both processes; raddle decides when it ends.
		process.on(signal, () => {
			if (signal === 'SIGTERM' || signal === 'SIGHUP') {
				child.kill(signal)
			}
		})
	}
	child.on('error', (err) => {
		console.error(`raddle: ${program} cannot be started: ${err.message}`)
		process.exit(1)
	})
	child.on('exit', (code, signal) => {
		if (signal) {
			process.removeAllListeners(signal)
			process.kill(process.pid, signal)
			return
		}
		process.exit(code)
	})
}

try {
	start(findProgram(), process.argv.slice(2))
} catch (err) {
	console.error(`raddle: ${err.message}`)
	process.exit(1)
}
