// What a linter finds wrong with the API's document: node lint.mjs OPENAPI.json
import { createConfig, lint } from "@redocly/openapi-core";

// A link that is good once leads on to the page: it has no answer of its own.
const config = await createConfig({ extends: ["recommended"], rules: { "operation-2xx-response": "off" } });
const problems = await lint({ ref: process.argv[2], config });
for (const { ruleId, severity, message, location } of problems) console.log(`${severity} ${ruleId}: ${message} (${location[0]?.pointer ?? ""})`);
process.exit(problems.length === 0 ? 0 : 1);
