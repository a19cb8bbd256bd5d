/**
 * Node's command-line options for the services. V8 does not support setting them later. The image reads them from the files that
 * `deploy/image/bundle.ts` writes beside the bundles.
 *
 * By default V8 scans its whole heap after every 64 MB of buffers, though nearly all of those are garbage by then. With large
 * answers, the scans took two thirds of a service's CPU time. The first option counts buffers as part of the heap instead. The
 * second lets the heap grow fourfold between scans, V8's default with gigabytes of memory; in half a gigabyte the default is
 * less than twofold.
 *
 * The other two bound the two semi-spaces of the young generation, in MB. By default each grows up to 64. A chat answer takes no more
 * CPU time with 32, but 5 % more with 16; a worker takes a quarter more for 128 embeddings with 4.
 */
const nodeFlags = [
  "--external-memory-accounted-in-global-limit",
  "--heap-growing-percent=300",
  "--min-semi-space-size=4",
  "--max-semi-space-size=32"
] as const

const busy = ["--min-semi-space-size=32"]

/**
 * Further flags of single services. The young generations of ingress and chat would grow to their maximum anyway, but in steps that
 * look like a leak. Data only passes through the console and the service for batches and soon becomes garbage, so scans of a small heap
 * are cheap, and keep these processes small.
 */
const own: Readonly<Record<string, ReadonlyArray<string>>> = {
  ingress: busy,
  chat: busy,
  console: ["--max-semi-space-size=4"],
  batches: ["--min-semi-space-size=2", "--max-semi-space-size=2", "--heap-growing-percent=50"]
}

/** The flags of a service. If a flag is repeated, the last one counts. */
export const nodeFlagsOf = (service: string): ReadonlyArray<string> => [...nodeFlags, ...(own[service] ?? [])]
