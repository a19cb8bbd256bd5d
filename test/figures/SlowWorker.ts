/**
 * How long requests wait for a worker at 80 % of the workers' capacity: with four equal workers, and with one four times
 * slower than the others.
 */
import { Effect } from "effect"
import { FakeProvider } from "../fixture/provider/FakeProvider.ts"
import { Gateway } from "../fixture/gateway/Gateway.ts"
import { askChat, Load } from "../fixture/client/Load.ts"
import { echo } from "../fixture/provider/answers/Answer.ts"
import { randomFrom } from "../fixture/general/Random.ts"
import { percentile } from "./Percentile.ts"

const workers = 4
const slots = 4
const slower = 4

/** The percentage of long calls. */
const longPercent = 15
const callMs = { "short-chat": 40, "long-chat": 400 }
const meanMs = (callMs["short-chat"] * (100 - longPercent) + callMs["long-chat"] * longPercent) / 100

const models = Object.keys(callMs).map((model) => `  ${model}: { workload: chat, targets: [{ provider: free }] }`).join(
  "\n"
)

/** The 95th percentile of the wait, in milliseconds. */
const measureWait = (slowOne: boolean, requests: number): Effect.Effect<number> =>
  Effect.scoped(Effect.gen(function*() {
    const slow = yield* FakeProvider.make()
    const gateway = yield* Gateway.make({
      workers: slowOne ? workers - 1 : workers,
      models,
      environment: { WORKER_SLOTS: String(slots) }
    })
    const asked = new Map<string, number>()
    return yield* Effect.promise(async () => {
      if (slowOne) await gateway.startWorker({ GATEWAY_CONFIG: await gateway.catalogueFor(slow.baseUrl) })
      for (const [model, forMs] of Object.entries(callMs)) {
        gateway.provider.behave({ kind: "silent", forMs }, { model })
        slow.behave({ kind: "silent", forMs: slower * forMs }, { model })
      }
      const speed = slots * (slowOne ? workers - 1 + 1 / slower : workers)
      const random = randomFrom(1)
      const sent = new Map<string, number>()
      const load = new Load(gateway, {
        clients: 400,
        patienceMs: 60_000,
        perSecond: 0.8 * 1_000 * speed / meanMs,
        ask: (_, id) => {
          sent.set(id, performance.now())
          return askChat(random() * 100 < longPercent ? "long-chat" : "short-chat", id)
        }
      })
      for (const provider of [gateway.provider, slow]) {
        provider.say((question) => {
          asked.set(question.messages[0]?.text ?? "", performance.now())
          return echo(question)
        })
      }
      // warm-up of the new processes
      await load.untilWhole(requests / 10, 0, 60_000)
      asked.clear()
      await load.untilWhole(requests, performance.now(), 120_000)
      await load.stop()
      return percentile([...asked].map(([id, at]) => at - (sent.get(id) ?? Number.NaN)), 0.95)
    })
  }))

export const slowWorker = (requests: number) =>
  Effect.all({ even: measureWait(false, requests), oneSlower: measureWait(true, requests) })
