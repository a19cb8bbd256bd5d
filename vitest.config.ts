/**
 * How `npm test` finds and runs the tests, in four projects: `unit` has no process and no network, `system` starts servers
 * and calls them, `process` breaks them, `long` takes minutes. `npm test -- --project unit` runs one.
 */
import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    pool: "forks",
    maxWorkers: 2,
    // Node runs the tests as it runs the services: with its own loader and compile cache
    experimental: { viteModuleRunner: false },
    // longer than anything that a test waits for (`Eventually.ts`)
    testTimeout: 120_000,
    hookTimeout: 120_000,
    globalSetup: "test/fixture/gateway/Bundles.ts",
    projects: [
      // nothing in a unit test outlives it, so that its files can share a process, and load Effect once
      { extends: true, test: { name: "unit", include: ["test/unit/**/*.test.ts"], isolate: false } },
      {
        extends: true,
        test: {
          name: "system",
          globalSetup: "test/fixture/gateway/WebApp.ts",
          include: ["test/{system,clients,image}/**/*.test.ts"],
          isolate: false
        }
      },
      { extends: true, test: { name: "process", include: ["test/process/**/*.test.ts"], isolate: false } },
      {
        extends: true,
        test: { name: "long", include: ["test/long/**/*.test.ts"], fileParallelism: false, sequence: { groupOrder: 1 } }
      }
    ]
  }
})
