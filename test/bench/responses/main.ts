/**
 * `npm run bench:responses`: measures the cost of stored responses for NATS. Stores responses of 1,000 owners in conversations of
 * ten, and measures memory, disk, reads, deletions and a restart of the server. Writes responses.md.
 *
 * BENCH_RESPONSES (100,000; a multiple of 10,000), BENCH_RESULTS and NATS_SERVER as for `npm run bench`.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Config, ConfigProvider, Context, Duration, Effect, Layer, Option } from "effect"
import { randomBytes, randomUUID } from "node:crypto"
import { atLeast } from "../../../shared/contract/Fields.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { conversationOf, Responses } from "../../../shared/records/Responses.ts"
import { residentMb } from "../../fixture/gateway/ProcessStatus.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { median } from "../Median.ts"
import { machine, publish, table } from "../Results.ts"
import { settings } from "../Settings.ts"

const owners = Array.from(
  { length: 1_000 },
  (_, index) => ({ id: `key_${index}`, salt: randomBytes(16).toString("base64url") })
)
const turns = 10

/** The text of a request and of its answer, in bytes. */
const inputBytes = 500
const outputBytes = 1_500

/** The time without requests before the memory is measured again. */
const rest = "1 minute"

/** How many owners write, or read, at the same time. */
const concurrency = 32

/** The number of responses to read, and to delete, for the figures. */
const samples = 500

const text = (value: unknown) => Buffer.from(JSON.stringify(value))
const words = (bytes: number) => randomBytes(bytes / 2).toString("hex")

const newRecord = () => {
  const id = `resp_${randomUUID().replaceAll("-", "")}`
  return {
    id,
    at: 0,
    input: text({ role: "user", content: words(inputBytes) }),
    output: text({ id: `msg_${id.slice(5)}0`, type: "message", content: words(outputBytes) }),
    response: text({ id, output: [] })
  }
}

const millisOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.timed(effect), ([took]) => Duration.toMillis(took))

const ms = (millis: ReadonlyArray<number>) => {
  const sorted = millis.toSorted((one, other) => one - other)
  return `${median(millis).toFixed(1)} ms, 99 of 100 in ${
    (sorted[Math.floor(0.99 * sorted.length)] ?? 0).toFixed(1)
  } ms`
}

const bench = Effect.gen(function*() {
  const { results } = yield* settings({ rounds: 1, stacks: [] })
  const wanted = yield* Config.schema(atLeast(owners.length * turns), "BENCH_RESPONSES").pipe(
    Config.withDefault(100_000)
  )
  const server = yield* NatsServer.make()
  const environment = { NATS_URL: server.url, GATEWAY_SECRET: "only for this measurement on this machine" }
  const context = yield* Layer.build(Responses.layer({ patienceMs: 60_000 }).pipe(Layer.provideMerge(Nats.layer))).pipe(
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(environment)))
  )
  const responses = Context.get(context, Responses)
  const memory = Effect.promise(() => residentMb(server.pid ?? 0))

  const emptyMb = yield* memory
  const conversations = Math.floor(wanted / owners.length / turns)
  /** The ids of the responses at the ends of conversations, by owner. */
  const ends: Array<readonly [owner: typeof owners[number], id: string]> = []
  const writing = yield* millisOf(
    Effect.forEach(owners, (owner) =>
      Effect.gen(function*() {
        for (let count = 0; count < conversations; count++) {
          let conversation = undefined
          let id = ""
          for (let turn = 0; turn < turns; turn++) {
            const record = newRecord()
            yield* responses.write(owner, record, conversation)
            conversation = conversationOf(
              { ...record, ancestors: conversation?.ancestors ?? [] },
              conversation?.items ?? new Uint8Array(0)
            )
            id = record.id
          }
          ends.push([owner, id])
        }
      }), { concurrency, discard: true })
  )
  const stored = owners.length * conversations * turns
  const fullMb = yield* memory
  yield* Effect.sleep(rest)
  const restedMb = yield* memory
  const storedBytes = server.storeBytes

  const some = ends.filter((_, index) => index % Math.max(1, Math.floor(ends.length / samples)) === 0).slice(0, samples)
  const read = (owner: typeof owners[number], id: string) => Effect.map(responses.find(owner, id), Option.getOrThrow)
  const reads = yield* Effect.forEach(some, ([owner, id]) => millisOf(read(owner, id)))
  const lists = yield* Effect.forEach(
    some,
    ([owner, id]) => millisOf(Effect.flatMap(read(owner, id), (record) => responses.findEarlier(owner, record)))
  )
  const deletions = yield* Effect.forEach(some, ([owner, id]) => millisOf(responses.delete(owner, id)))

  const [owner, id] = ends.at(-1) ?? [owners[0]!, ""]
  const restart = yield* millisOf(Effect.promise(() => server.restart()))
  yield* read(owner, id)
  const afterMb = yield* memory
  yield* Effect.promise(() => server.kill())
  yield* publish(
    results,
    "responses.md",
    [
      "# Stored responses",
      "",
      `${yield* machine}. One NATS server, ${stored.toLocaleString("en")} responses of ${
        owners.length.toLocaleString("en")
      } ` +
      `owners in conversations of ${turns}, each with ${inputBytes} bytes of input and ${outputBytes} of output.`,
      "",
      ...table(["what", "cost"], [
        [
          "writing",
          `${Math.round(stored / writing * 1_000).toLocaleString("en")} responses/s, ${concurrency} at a time`
        ],
        [
          "memory of NATS: empty, after the writes, a minute later, and after a restart",
          `${[emptyMb, fullMb, restedMb, afterMb].map((mb) => `${Math.round(mb)} MB`).join(", ")}`
        ],
        ["disk", `${Math.round(storedBytes / 1024 ** 2)} MB, ${Math.round(storedBytes / stored)} bytes per response`],
        ["reading a response", ms(reads)],
        ["reading a response and the nine before it", ms(lists)],
        ["deleting a response", ms(deletions)],
        ["restarting NATS", `${(restart / 1_000).toFixed(1)} s`]
      ]),
      ""
    ].join("\n")
  )
}).pipe(Effect.scoped)

NodeRuntime.runMain(Effect.provide(bench, NodeServices.layer))
