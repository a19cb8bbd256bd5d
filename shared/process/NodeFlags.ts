/**
 * Node's command-line options for the services. V8 does not support setting them later. `deploy/Dockerfile` repeats them.
 *
 * By default V8 scans its whole heap after every 64 MB of buffers, though nearly all of those are garbage by then. With large
 * answers, the scans took two thirds of a service's CPU time. The first option counts buffers as part of the heap instead. The
 * second lets the heap grow fourfold between scans, V8's default with gigabytes of memory; in half a gigabyte the default is
 * less than twofold.
 */
export const nodeFlags = ["--external-memory-accounted-in-global-limit", "--heap-growing-percent=300"] as const

/**
 * Further flags of single services. Data only passes through the service for batches and is garbage at once, so scans of its small
 * heap are cheap, and keep the process small. The image reads these flags from `NODE_FLAGS`.
 */
const own: Readonly<Record<string, ReadonlyArray<string>>> = {
  batches: ["--max-semi-space-size=2", "--heap-growing-percent=50"]
}

/** The flags of a service. If a flag is repeated, the last one counts. */
export const nodeFlagsOf = (service: string): ReadonlyArray<string> => [...nodeFlags, ...(own[service] ?? [])]
