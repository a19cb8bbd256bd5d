/**
 * How vitest finds and runs the tests. `npm test` runs three projects: `unit` has no process and no network, `system` runs the gateway in
 * its own process with a real nats-server, `process` starts the services as processes and breaks them. `npm run test:long` runs the parts
 * of `long`, each alone. `npm test -- --project unit` runs one project, `npm test -- test/unit/bus` one folder.
 */
import { defineConfig } from "vitest/config"

const isLong = process.env["TESTS"] === "long" || process.argv.some((word) => word.startsWith("test/long"))

/** The files of a project share a process, and load Effect and the services once: they close what they open. */
const project = (name: string, include: string, ...globalSetup: Array<string>) => ({
  extends: true as const,
  test: { name, include: [include], isolate: false, globalSetup }
})

/** One file after another: they measure times and memory, or fill the machine. */
const alone = ({ test, ...rest }: ReturnType<typeof project>) => ({
  ...rest,
  // after the projects whose files run together, where a part runs both
  test: { ...test, fileParallelism: false, sequence: { groupOrder: 1 } }
})

const bundles = "test/fixture/gateway/Bundles.ts"
const webApp = "test/fixture/gateway/WebApp.ts"

export default defineConfig({
  test: {
    pool: "forks",
    // files wait for servers: a third one fills the pauses of two cores
    maxWorkers: 3,
    // Node runs the tests as it runs the services: with its own loader and compile cache
    experimental: { viteModuleRunner: false },
    // longer than anything that a test waits for (`Eventually.ts`): only a test that hangs takes so long
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: process.env["CI"] === undefined ? ["default"] : ["default", "./test/fixture/runner/SlowestFiles.ts"],
    projects: [
      project("unit", "test/unit/**/*.test.ts"),
      project("system", "test/{system,clients,image}/**/*.test.ts", bundles, webApp),
      project("process", "test/process/**/*.test.ts", bundles, webApp),
      ...(isLong ? [alone(project("long", "test/long/**/*.test.ts", bundles, webApp))] : [])
    ]
  }
})
