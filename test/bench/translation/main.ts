/**
 * `npm run bench:translation`: measures the CPU time of a streamed response that is translated from another chat API, relative to
 * one that is relayed. Writes translation.md; takes about seven minutes.
 *
 * BENCH_ROWS (default all), BENCH_ROUNDS (5), BENCH_SECONDS, BENCH_WARM_UP, BENCH_RESULTS and NATS_SERVER as for `npm run
 * bench`.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Layer } from "effect"
import { findGenerator, type Round, runRound } from "../Load.ts"
import { median } from "../Median.ts"
import { machine, publish, table } from "../Results.ts"
import { again, settings } from "../Settings.ts"
import { startGateway, startGround } from "../Stacks.ts"
import { type Api, apis, modelOf } from "../Streams.ts"

/** The largest ratio of a translated stream's CPU time to a relayed one's. */
const bound = 1.3

const rows = [60, 300].flatMap((pieces) =>
  [true, false].map((isPaced) => ({
    name: `${pieces} pieces ${isPaced ? "5 ms apart" : "at once"}`,
    model: (api: Api) => modelOf(api, pieces, isPaced)
  }))
)
type Row = typeof rows[number]

const names: Readonly<Record<Api, string>> = {
  responses: "relayed",
  anthropic: "from messages",
  gemini: "from generated content",
  mock: "from chat completions"
}
const translated = apis.filter((api) => api !== "responses")

/** One round each, neighbouring in time. */
type Rounds = Readonly<Record<Api, Round>>

const page = (about: string, results: ReadonlyArray<readonly [Row, ReadonlyArray<Rounds>]>): string => {
  const cost = (rounds: ReadonlyArray<Rounds>, api: Api) => median(rounds.map((round) => round[api].cpuMicros))
  const ratios = (rounds: ReadonlyArray<Rounds>, api: Api) =>
    rounds.map((round) => round[api].cpuMicros / round.responses.cpuMicros)
  return [
    "# The cost of translation",
    "",
    about,
    "",
    "Streams for a client of `POST /v1/responses`. Median CPU time per stream of ingress, worker and NATS in microseconds, and its",
    `median ratio to that of a relayed stream of the same text, with the lowest and highest. The target is at most ${bound}.`,
    "",
    ...table(
      ["stream", ...apis.map((api) => names[api]), "met"],
      results.map(([{ name }, rounds]) => [
        name,
        ...apis.map((api) => {
          const found = ratios(rounds, api).toSorted((one, other) => one - other)
          const range = `${median(found).toFixed(2)} (${found.at(0)?.toFixed(2)} – ${found.at(-1)?.toFixed(2)})`
          return `${cost(rounds, api).toFixed(0)}${api === "responses" ? "" : `, ${range}`}`
        }),
        translated.every((api) => median(ratios(rounds, api)) <= bound) ? "yes" : "**no**"
      ])
    ),
    ""
  ].join("\n")
}

const measure = Effect.gen(function*() {
  const { isWanted, natsServer, results, rounds: count, seconds, warmUp } = yield* settings({ rounds: 5, stacks: [] })
  const generator = yield* findGenerator
  const ground = yield* startGround(natsServer)
  const { serve, stack } = yield* startGateway(ground, { name: "gateway", workloads: ["chat"] })
  const wanted = rows.filter(isWanted)
  yield* serve(
    wanted.flatMap(({ model }) => apis.map((api) => ({ name: model(api), workload: "chat" as const, provider: api })))
  )
  const run = ({ model }: Row, api: Api, seconds: number) =>
    runRound({
      generator,
      ground,
      stack,
      row: {
        name: model(api),
        workload: "chat",
        path: "/v1/responses",
        body: { model: model(api), input: "What does a gateway give a platform team?", stream: true, store: false },
        connections: 32
      },
      seconds
    })

  const measured: Array<readonly [Row, ReadonlyArray<Rounds>]> = []
  for (const [index, row] of wanted.entries()) {
    for (const api of apis) yield* run(row, api, index === 0 ? Math.ceil(warmUp / 2) : again(warmUp))
    const rounds: Array<Rounds> = []
    for (let round = 0; round < count; round++) {
      const order = round % 2 === 0 ? apis : apis.toReversed()
      const found = yield* Effect.forEach(
        order,
        (api) => Effect.map(run(row, api, seconds), (one) => [api, one] as const)
      )
      rounds.push(Object.fromEntries(found) as unknown as Rounds)
      yield* Console.log(
        `${row.name}: ${
          found.map(([api, { cpuOf: { ingress, nats, worker } }]) =>
            `${names[api]} ${[ingress, worker, nats].map(Math.round).join(" + ")}`
          ).join(", ")
        } µs`
      )
    }
    measured.push([row, rounds])
  }
  const about = `${yield* machine}; ${count} rounds of ${seconds} s, 32 connections.`
  yield* publish(results, "translation.md", page(about, measured))
}).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(NodeServices.layer, NodeHttpClient.layerUndici)))

NodeRuntime.runMain(measure)
