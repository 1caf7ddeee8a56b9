// Writes the types of the API's calls, for the page: node client.mjs OPENAPI.json TO.ts
import { readFileSync, writeFileSync } from "node:fs";

const [from, to] = process.argv.slice(2);
const { paths, components } = JSON.parse(readFileSync(from, "utf8"));
const kPrefix = "#/components/schemas/";
const wanted = new Set();

// "fleet/$defs/server" is FleetServer.
const type_name = (schema) =>
  schema
    .split("/$defs/")
    .map((part) => part[0].toUpperCase() + part.slice(1))
    .join("");

function reference(schema) {
  wanted.add(schema);
  return type_name(schema);
}

const union = (types) => [...new Set(types)].join(" | ");
const in_array = (type) => (type.includes(" ") ? `(${type})[]` : `${type}[]`);

function object(schema) {
  const known = Object.entries(schema.properties ?? {}).map(([name, value]) => {
    const is_there = (schema.required ?? []).includes(name);
    return `${JSON.stringify(name)}${is_there ? "" : "?"}: ${type_of(value)};`;
  });
  if (known.length > 0) return `{ ${known.join(" ")} }`;
  return `Record<string, ${typeof schema.additionalProperties === "object" ? type_of(schema.additionalProperties) : "unknown"}>`;
}

function type_of(schema) {
  if (schema.$ref !== undefined) return reference(schema.$ref.slice(kPrefix.length));
  if (schema.enum !== undefined) return union(schema.enum.map((value) => JSON.stringify(value)));
  const any = schema.anyOf ?? schema.oneOf;
  if (any !== undefined) return union(any.map(type_of));
  if (schema.type === undefined) return "unknown";
  return union(
    [schema.type].flat().map((type) => {
      if (type === "array") return in_array(type_of(schema.items ?? {}));
      if (type === "object") return object(schema);
      return type === "integer" ? "number" : type;
    }),
  );
}

function asks_of(operation) {
  const asks = (operation.parameters ?? []).map(({ name, required, schema }) => `${JSON.stringify(name)}${required ? "" : "?"}: ${type_of(schema)};`);
  return `{ ${asks.join(" ")} }`;
}

function calls_of(method) {
  return Object.entries(paths).flatMap(([path, operations]) => {
    const operation = operations[method];
    if (operation === undefined || !path.startsWith("/v1/")) return [];
    const [success] = Object.keys(operation.responses).sort(); // 200 or 201
    const [[media, { schema }]] = Object.entries(operation.responses[success].content);
    const answer = media === "application/json" ? type_of(schema) : "string";
    return [`  /** ${operation.summary} */\n  ${JSON.stringify(path)}: { asks: ${asks_of(operation)}; answer: ${answer} };`];
  });
}

const lines = ["// Made by client.mjs of the API's document.", ""];
for (const [name, method] of Object.entries({ Gets: "get", Posts: "post" }))
  lines.push(`export interface ${name} {`, ...calls_of(method), "}", "");
const written = new Set();
for (let left = [...wanted]; left.length > 0; left = [...wanted].filter((name) => !written.has(name)))
  for (const name of left) {
    written.add(name);
    const schema = name.split("/").reduce((within, part) => within[part], components.schemas);
    if (schema.description) lines.push(`/** ${schema.description} */`);
    lines.push(`export type ${type_name(name)} = ${type_of(schema)};`, "");
  }
writeFileSync(to, lines.join("\n"));
