import { defineConfig } from "vite";

// Three files with plain names, so that the server can carry them.
export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2020",
    modulePreload: false,
    cssCodeSplit: false,
    rollupOptions: {
      output: { entryFileNames: "page.js", assetFileNames: "page[extname]", inlineDynamicImports: true },
    },
  },
});
