/** The memory and CPU time of a process and its descendants, according to Linux. */
import { Effect, FileSystem } from "effect"
import { basename } from "node:path"
import { cpuMicros } from "../Processes.ts"

export interface Footprint {
  readonly pid: number
  readonly name: string
  /** The proportional set size. */
  readonly megabytes: number
  /** CPU time since the first measurement. */
  readonly cpuMillis: number
}

/** The CPU time of each process so far, in microseconds. */
type Processes = ReadonlyMap<number, number>

const read = Effect.fnUntraced(function*(file: string) {
  return yield* (yield* FileSystem.FileSystem).readFileString(file).pipe(Effect.orElseSucceed(() => ""))
})

const childrenOf = Effect.fnUntraced(function*(pid: number) {
  const threads = yield* (yield* FileSystem.FileSystem).readDirectory(`/proc/${pid}/task`).pipe(
    Effect.orElseSucceed((): ReadonlyArray<string> => [])
  )
  const lists = yield* Effect.forEach(threads, (thread) => read(`/proc/${pid}/task/${thread}/children`))
  return lists.flatMap((list) => list.split(" ").filter((word) => word !== "").map(Number))
})

/** A process and its descendants that are still running. */
export const processesOf = Effect.fn("Footprint.processesOf")(function*(root: number) {
  const found = new Map<number, number>()
  const left = [root]
  for (let pid = left.shift(); pid !== undefined; pid = left.shift()) {
    const micros = yield* Effect.option(cpuMicros([pid]))
    if (micros._tag === "None") continue
    found.set(pid, micros.value)
    left.push(...(yield* childrenOf(pid)))
  }
  return found satisfies Processes
})

/** The name of a process's script, or else of its program. Shells are a supervisor's watchers. */
const nameOf = Effect.fnUntraced(function*(pid: number) {
  const [program = "", ...words] = (yield* read(`/proc/${pid}/cmdline`)).split("\0")
  const script = words.find((word) => /\.[jt]s$/.test(word))
  return basename(script ?? program.split(" ")[0] ?? "", ".js")
})

/** The memory of each process now, and its CPU time since `before`, or since its start if that was later. */
export const footprint = Effect.fn("Footprint.footprint")(function*(root: number, before: Processes) {
  return yield* Effect.forEach(yield* processesOf(root), ([pid, micros]) =>
    Effect.gen(function*() {
      const kilobytes = /^Pss:\s+(\d+) kB/m.exec(yield* read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0
      return {
        pid,
        name: yield* nameOf(pid),
        megabytes: Number(kilobytes) / 1_024,
        cpuMillis: (micros - (before.get(pid) ?? 0)) / 1_000
      } satisfies Footprint
    }))
})
