/** How `npm test` finds and runs the tests: processes of their own, so that a test may start servers and change the environment. */
import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["**/node_modules/**", ".gateway/**"],
    pool: "forks",
    // Tests start real servers; more files at once than the smallest machine has cores only makes them late.
    maxWorkers: 2,
    // Many are about time and failure, on a machine that may be busy with something else. A second chance is shown as such.
    retry: 1,
    testTimeout: 30_000,
    hookTimeout: 60_000
  }
})
