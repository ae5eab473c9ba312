#!/usr/bin/env node
// Starts the program of the package for this platform with the same arguments,
// streams and environment, and ends as it ends.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { isatty } = require("node:tty");

const platform = `${process.platform}-${process.arch}`;
const name = `@knowhow-mcp/${platform}`;
let program;
try {
  program = require.resolve(`${name}/bin/knowhow${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(
    `knowhow: the package ${name}, which has the program for ${platform}, is not installed.\n` +
      "Install knowhow again without --omit=optional and --no-optional. If there is no such package, build the program\n" +
      "with Go: go install github.com/knowhow-mcp/knowhow/cmd/knowhow@latest",
  );
  process.exit(1);
}

const args = process.argv.slice(2);
const child = spawn(program, args, { stdio: "inherit" });
// Passes signals on, except the interrupt of a terminal, which the program gets itself.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK"]) {
  if (signal in constants.signals) {
    process.on(signal, () => {
      if (signal !== "SIGINT" || !isatty(0)) child.kill(signal);
    });
  }
}
// When npx ends by a signal, only the shell between it and this script gets the signal.
if (process.env.npm_lifecycle_event === "npx") {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) child.kill("SIGTERM");
  }, 500).unref();
}
child.on("error", (err) => {
  console.error(`knowhow: ${program} cannot be started: ${err.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
