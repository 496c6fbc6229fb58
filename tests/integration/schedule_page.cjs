// Runs the schedule page's own scripts outside a browser: a question a line on standard input, an answer a line on standard output.
// Arguments: the names of time zones, by spaces; the scripts. Question: {document, now, from, to}, times in milliseconds, or {scalar}. Answer: {findings} or {findings, schedule, state, spans, collisions, doubts}.
"use strict";

const { readFileSync } = require("node:fs");
const { createInterface } = require("node:readline");
const { runInThisContext } = require("node:vm");

const [zones, ...paths] = process.argv.slice(2);
const scripts = paths.map((path) => readFileSync(path, "utf8")).join("\n");
const { engine, reader } = runInThisContext(`${scripts}\n;({ engine: scheduleEngine, reader: scheduleDocument })`);
engine.knowZones(zones);

createInterface({ input: process.stdin }).on("line", (line) => {
  const { document, now, from, to, scalar } = JSON.parse(line);
  if (scalar !== undefined) {
    process.stdout.write(`${JSON.stringify({ value: reader.parse(`field: ${scalar}`).value.get("field").value })}\n`);
    return;
  }
  const { schedule, findings } = reader.read(document);
  const answer = { findings, schedule };
  if (schedule) {
    const { spans, collisions } = engine.timeline(schedule, from, to);
    Object.assign(answer, { state: engine.stateAt(schedule, now), spans, collisions, doubts: engine.doubts(schedule, now) });
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
