// Checks what `berth plan --manifests` wrote against the schemas of Kubernetes' OpenAPI and of KEDA's definitions, as
// npm packages ship them. Not part of the suite, since they take 35 MB; in an empty folder:
//
//   npm init -y && npm install kubernetes-models@5.1.0 @kubernetes-models/keda@2.0.0 js-yaml typescript
//   cp BERTH/tools/check_manifests.mjs . && node check_manifests.mjs DIR…
//   npx tsc --noEmit --strict --skipLibCheck --moduleResolution bundler --module esnext --target es2022 check.ts
//
// The schemas accept keys that they do not know, so each document also goes into check.ts as a literal of its declared
// interface, where the compiler refuses such a key.
import fs from "fs";
import path from "path";
import * as yaml from "js-yaml";

const modules = {
  Deployment: "kubernetes-models/apps/v1/Deployment",
  HorizontalPodAutoscaler: "kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler",
  ScaledObject: "@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject",
};
const lines = Object.entries(modules).map(([kind, module]) => `import { I${kind} } from "${module}";`);
const counts = {};
let invalid = 0;
for (const directory of process.argv.slice(2))
  for (const file of fs.readdirSync(directory).filter(name => name.endsWith(".yaml")))
    for (const document of yaml.loadAll(fs.readFileSync(path.join(directory, file), "utf8"))) {
      const kind = document.kind, Model = (await import(modules[kind]))[kind];
      counts[kind] = (counts[kind] || 0) + 1;
      lines.push(`export const d${lines.length}: I${kind} = ${JSON.stringify(document)};`);
      try {
        if (document.apiVersion !== Model.apiVersion) throw new Error(`apiVersion: ${document.apiVersion}`);
        new Model(document).validate();
      } catch (error) {
        ++invalid;
        console.log(`${file}: ${kind}: ${error.message}`);
      }
    }
fs.writeFileSync("check.ts", lines.join("\n") + "\n");
console.log(counts, `${invalid} invalid`);
process.exit(invalid ? 1 : 0);
