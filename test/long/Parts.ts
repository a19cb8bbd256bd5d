/** The parts of `npm run test:long`. Each takes at most 20 minutes on two cores, and all together at most 75. */

export interface Part {
  readonly name: string
  /** What Node runs. */
  readonly script: string
  readonly words: ReadonlyArray<string>
  readonly environment: Readonly<Record<string, string>>
  /** The version of nats-server, which pip installs. Default: the one on the PATH. */
  readonly natsServer?: string
}

const vitest = "node_modules/vitest/vitest.mjs"

const tests = (
  name: string,
  paths: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {}
): Part => ({
  name,
  script: vitest,
  words: ["run", ...paths],
  environment
})

export const parts: ReadonlyArray<Part> = [
  // chaos, billing and soak in short forms: random failures of every process and of NATS
  tests("chaos", ["test/long/chaos"]),
  // rolling deploys, the upgrade from the last release, the production manifests as processes
  tests("deploy", ["test/long/deploy"]),
  // clusters of NATS, outages, a lost NATS that is restored
  tests("nats", ["test/long/nats"]),
  // large bodies, batches and streams, and the memory that they take
  tests("bodies", ["test/long/bodies", "test/long/files"]),
  // limits by the wall clock, and fairness between tenants
  tests("limits", ["test/long/limits"]),
  // programs from npm, and the older majors of the clients' SDKs
  tests("clients", ["test/clients", "test/long/clients"], { CLIENT_MAJORS: "all" }),
  // the oldest nats-server is Debian's, which every test uses; these are the ones that users install
  ...["2.12.7", "2.15.1"].map((version) => ({
    ...tests(`nats-server-${version}`, ["test/system/bus", "test/system/limits", "test/process/nats"]),
    natsServer: version
  })),
  // restores differ between versions: the one of `deploy`, and the newest
  ...["2.14.2", "2.15.1"].map((version) => ({
    ...tests(`restore-${version}`, ["test/system/operations/Restore.test.ts", "test/long/nats/RestoreDrill.test.ts"]),
    natsServer: version
  })),
  tests("seeds", ["test/long/simulation"]),
  { name: "simulation", script: "test/simulation/main.ts", words: [], environment: { SIMULATE_SECONDS: "600" } }
]
