/**
 * Upgrades a gateway and rolls it back under load, one process at a time, in the order of `deploy/README.md`. A process gets SIGTERM
 * once its successor is ready, and each mixture of versions serves requests.
 */
import { eventually } from "../fixture/general/Eventually.ts"
import type { Gateway, ServiceProcess } from "../fixture/gateway/Gateway.ts"
import type { Release } from "../fixture/gateway/Release.ts"
import { type Ask, askChat, type Entry, Load } from "../fixture/client/Load.ts"
import { createKey, price, words } from "./Setting.ts"
import { eventsIn } from "../fixture/nats/UsageEvents.ts"

export interface UpgradeOptions {
  readonly from: Release
  readonly to: Release
  /** A service for each of its processes, in the order in which they are replaced. The console comes before them, and last in a rollback. */
  readonly services: ReadonlyArray<string>
  readonly clients: number
  /** Requests per second. */
  readonly perSecond: number
  readonly log: (line: string) => void
}

/** The replacement of one process. */
export interface Move {
  readonly service: string
  readonly from: string
  readonly to: string
  /** From the start of the successor until it is ready, in milliseconds. */
  readonly readyMs: number
  /** From SIGTERM until the old process has ended, in milliseconds. */
  readonly drainMs: number
  readonly exit: number | string
  /** Requests that ended from the start of the successor until each client had an answer of the new mixture. */
  readonly requests: number
  readonly failed: number
}

/** Sums over requests. */
export interface Sums {
  readonly requests: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costUsd: number
}

export interface UpgradeReport {
  readonly moves: ReadonlyArray<Move>
  readonly requests: number
  /** Requests without a complete answer. */
  readonly failed: ReadonlyArray<Entry>
  /** Paid requests for which the provider was called twice. */
  readonly doubled: ReadonlyArray<Entry>
  /** What the provider was asked for and answered. */
  readonly served: Sums
  /** The usage events of these requests. */
  readonly events: Sums
  /** The ids of the keys that were used. */
  readonly keys: ReadonlyArray<string>
  /** Errors in the logs of the processes. */
  readonly errors: ReadonlyArray<string>
}

const costOf = (input: number, output: number): number =>
  (input * price.inputPerMillion + output * price.outputPerMillion) / 1_000_000

export const upgrade = async (gateway: Gateway, options: UpgradeOptions): Promise<UpgradeReport> => {
  const { clients, from, log, perSecond, services, to } = options
  gateway.provider.behave({ kind: "paced", chunks: words.answer, everyMs: 40 })
  const keys = [await createKey(gateway, "before the upgrade")]
  const ask = (index: number, id: string): Ask => {
    const { key } = keys[index % keys.length] ?? { key: gateway.key }
    const headers = { authorization: `Bearer ${key}` }
    if (index % 5 === 4) {
      return { model: "embedding", path: "/v1/embeddings", headers, body: { model: "embedding", input: id } }
    }
    return { ...askChat(index % 2 === 0 ? "free-chat" : "paid-chat", id, { stream: index % 4 < 2 }), headers }
  }
  const load = new Load(gateway, { clients, patienceMs: 60_000, perSecond, ask })
  await load.untilWhole(2 * clients)

  const moves: Array<Move> = []
  const start = (name: string): Promise<ServiceProcess> =>
    name === "console"
      ? gateway.startConsole()
      : name === "ingress"
      ? gateway.startIngress()
      : gateway.startWorker({}, name)
  /** Replaces the oldest process of a service that is not of the gateway's release. */
  const replace = async (service: string, leaving: Release) => {
    const old = gateway.processes.find(({ hasExited, name, release }) =>
      name === service && !hasExited && release === leaving
    )
    if (old === undefined) throw new Error(`no ${service} of ${leaving.name} runs`)
    const begun = performance.now()
    const before = load.entries.length
    await start(service)
    const ready = performance.now()
    const exit = await old.terminate()
    const drained = performance.now()
    await load.untilWhole(2 * clients, drained, 60_000)
    const entries = load.entries.slice(before)
    const broken = entries.filter(({ outcome }) => outcome.kind !== "whole")
    const failed = broken.length
    for (const { beganAt, ingress, model, outcome, tookMs } of broken) {
      const began = `${((beganAt - begun) / 1_000).toFixed(2)} s after the start of the successor`
      log(
        `  ${model} at ${ingress.release.name}, ${began}, ended after ${tookMs.toFixed(0)} ms: ${
          JSON.stringify(outcome)
        }`
      )
    }
    const move: Move = {
      service,
      from: leaving.name,
      to: gateway.release.name,
      readyMs: ready - begun,
      drainMs: drained - ready,
      exit,
      requests: entries.length,
      failed
    }
    moves.push(move)
    log(`${service}: ${leaving.name} to ${gateway.release.name}, ${entries.length} requests, ${failed} failed`)
  }

  gateway.release = to
  await gateway.admin("provision")
  for (const service of ["console", ...services]) await replace(service, from)
  keys.push(await createKey(gateway, "after the upgrade"))
  await load.untilWhole(2 * clients, performance.now())

  gateway.release = from
  await gateway.admin("provision")
  for (const service of [...services.toReversed(), "console"]) await replace(service, to)
  await load.stop()
  // missing events are reported, not waited for without end
  const isComplete = (events: ReadonlyArray<unknown>) => events.length >= load.entries.length
  const stored = await eventually(() => eventsIn(gateway.nats), isComplete, 15_000).catch(() => eventsIn(gateway.nats))
  const sum = (of: (event: typeof stored[number]) => number | null | undefined) =>
    stored.reduce((total, event) => total + (of(event) ?? 0), 0)
  const embeddings = load.entries.filter(({ model }) => model === "embedding").length
  const input = load.entries.length * words.request
  const output = (load.entries.length - embeddings) * words.answer
  return {
    moves,
    requests: load.entries.length,
    failed: load.entries.filter(({ outcome }) => outcome.kind !== "whole"),
    doubled: load.calledTwice("paid-chat"),
    served: {
      requests: load.entries.length,
      inputTokens: input,
      outputTokens: output,
      costUsd: costOf(input, output)
    },
    events: {
      requests: stored.filter(({ outcome }) => outcome === "success").length,
      inputTokens: sum(({ usage }) => usage?.inputTokens),
      outputTokens: sum(({ usage }) => usage?.outputTokens),
      costUsd: sum(({ costUsd }) => costUsd)
    },
    keys: keys.map(({ id }) => id),
    errors: gateway.processes.flatMap(({ log, name, release }) =>
      log.split("\n").filter((line) => /"level":"(ERROR|FATAL)"/i.test(line)).map((line) =>
        `${name} ${release.name}: ${line}`
      )
    )
  }
}
