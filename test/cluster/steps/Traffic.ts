/** Clients that send a chat request every 200 ms each to the next ready pod of ingress, as a Service does. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Context, Effect, Fiber, Layer, Schedule } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { testKey } from "../../fixture/gateway/Gateway.ts"
import { componentOf } from "../kubelet/ApiPod.ts"
import type { Life } from "../kubelet/Kubelet.ts"

const clients = 4

export interface Requests {
  readonly answered: number
  /** Why the others failed. */
  readonly failed: ReadonlyArray<string>
}

/** Sends requests while the work runs. */
export const during = Effect.fn("Traffic.during")(function*<E, R>(
  lives: () => ReadonlyArray<Life>,
  work: Effect.Effect<unknown, E, R>
) {
  // a connection for each request: a Service balances connections
  const context = yield* Layer.build(Layer.fresh(NodeHttpClient.layerUndiciOptions({ pipelining: 0 })))
  const client = HttpClient.filterStatusOk(Context.get(context, HttpClient.HttpClient))
  let answered = 0
  let turn = 0
  const failed: Array<string> = []
  const ask = Effect.gen(function*() {
    const ready = lives().filter(({ pod, process }) => componentOf(pod) === "ingress" && process?.ready === true)
    const port = ready[turn++ % ready.length]?.process?.port
    if (port === undefined) {
      failed.push("no pod of ingress was ready")
      return
    }
    const request = HttpClientRequest.post(`http://127.0.0.1:${port}/v1/chat/completions`).pipe(
      HttpClientRequest.bearerToken(testKey),
      HttpClientRequest.bodyJsonUnsafe({ model: "local-chat", messages: [{ role: "user", content: "Hello" }] })
    )
    yield* client.execute(request).pipe(
      Effect.flatMap((response) => response.text),
      Effect.timeout("30 seconds"),
      Effect.match({
        onFailure: (error) => {
          failed.push(error.message)
        },
        onSuccess: () => {
          answered++
        }
      })
    )
  })
  let isOver = false
  const load = yield* Effect.forkScoped(Effect.forEach(
    Array.from({ length: clients }),
    () => ask.pipe(Effect.repeat({ schedule: Schedule.spaced("200 millis"), until: () => isOver })),
    { concurrency: "unbounded", discard: true }
  ))
  yield* work
  isOver = true
  yield* Fiber.join(load)
  return { answered, failed } satisfies Requests
}, Effect.scoped)
