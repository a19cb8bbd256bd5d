/**
 * Sends events to webhook receivers. Workers do this beside their tasks, because they may call the internet, unlike ingress and console.
 */
import { Clock, Config, Effect, Exit, Layer, Option, Schema, Semaphore } from "effect"
import { whileJetStreamFails } from "../nats/JetStream.ts"
import type { WorkItem } from "../nats/WorkQueue.ts"
import { type FetchRefused, GuardedFetch } from "../provider/transport/GuardedFetch.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import { type Due, openDeliveries } from "./Deliveries.ts"
import * as Delivery from "./Delivery.ts"
import { type Endpoint, openEndpoints, secretsAt } from "./Endpoints.ts"
import { headersOf } from "./Signature.ts"

/** How many events a worker sends concurrently, and how many of them to a receiver that is slow or fails. */
const slots = 16
const slotsOfTroubled = 2

/** How long a receiver may take to answer, and after how long it counts as slow, in milliseconds. */
const answerWithinMs = 10_000
const slowMs = 2_000

/** The pause of an event whose receiver has no free slot, and of an event that could not be read or written, in milliseconds. */
const busyMs = 10_000
const unreadableMs = 5_000

/** An item that arrives earlier than this before its time, in milliseconds, waits again: a restarted server forgets pauses. */
const earlyMs = 1_000

const originsIn = (text: string): ReadonlyArray<string> =>
  text.split(",").map((origin) => origin.trim()).filter((origin) => origin !== "")

const Origins = Schema.String.check(
  Schema.makeFilter((text: string) => originsIn(text).every((origin) => URL.parse(origin)?.origin === origin), {
    expected: "origins such as http://hooks.svc:8080, separated by commas"
  })
)

/** The origins of receivers that may have any address, including private ones. */
const trustedOrigins = Config.schema(Origins, "GATEWAY_WEBHOOK_ORIGINS").pipe(
  Config.map(originsIn),
  Config.withDefault([])
)

/** Keeps receivers that are slow or fail from taking all slots. Receivers are identified by their owners. */
const makeReceivers = () => {
  const running = new Map<string, number>()
  const troubled = new Set<string>()
  const count = (owner: string): number => running.get(owner) ?? 0
  return {
    /** Takes a slot; `false` if the receiver has none free. */
    begin: (owner: string): boolean => {
      if (troubled.has(owner) && count(owner) >= slotsOfTroubled) return false
      running.set(owner, count(owner) + 1)
      return true
    },
    judge: (owner: string, isWell: boolean): unknown => isWell ? troubled.delete(owner) : troubled.add(owner),
    end: (owner: string): unknown => count(owner) > 1 ? running.set(owner, count(owner) - 1) : running.delete(owner)
  }
}

const unconfigured: Delivery.Outcome = { text: "the key has no webhook", is: "final" }

const outcomeOfStatus = (status: number): Delivery.Outcome => ({
  text: String(status),
  is: status >= 200 && status < 300 ? "accepted" : "refused"
})

const outcomeOfRefusal = ({ message, reason }: FetchRefused): Delivery.Outcome => ({
  text: message,
  is: reason === "address" || reason === "url" ? "final" : "refused"
})

/** Delivers events until the scope closes. Reads `GATEWAY_SECRET` and `GATEWAY_WEBHOOK_ORIGINS`. */
export const layer = Layer.effectDiscard(Effect.gen(function*() {
  const guard = yield* GuardedFetch
  const origins = yield* trustedOrigins
  const receivers = makeReceivers()
  const free = yield* Semaphore.make(slots)
  for (const outcome of Delivery.outcomes) Metrics.update(Metrics.webhookAttempts(outcome), 0)
  const scope = yield* Effect.scope

  const send = ({ delivery }: Due, endpoint: Endpoint, now: number): Effect.Effect<Delivery.Outcome> => {
    const { url } = endpoint
    const body = Delivery.bodyOf(delivery)
    const signed = headersOf(delivery.id, now, body, secretsAt(endpoint, now))
    return guard.post(url, {
      body,
      headers: { "content-type": "application/json", ...signed },
      trusted: origins.find((origin) => origin === URL.parse(url)?.origin),
      withinMs: answerWithinMs
    }).pipe(Effect.match({ onFailure: outcomeOfRefusal, onSuccess: outcomeOfStatus }))
  }

  const serve = Effect.gen(function*() {
    const endpoints = yield* Effect.retry(openEndpoints, whileJetStreamFails)
    const deliveries = yield* Effect.retry(openDeliveries, whileJetStreamFails)

    /** Makes one attempt. Returns the pause until the next one in milliseconds; `undefined` if there will be none. */
    const attempt = Effect.fnUntraced(function*(due: Due) {
      const begun = yield* Clock.currentTimeMillis
      const endpoint = yield* endpoints.find(due.owner)
      const outcome = Option.isNone(endpoint) ? unconfigured : yield* send(due, endpoint.value, begun)
      Metrics.update(Metrics.webhookAttempts(outcome.is), 1)
      const now = yield* Clock.currentTimeMillis
      receivers.judge(due.owner, outcome.is === "accepted" && now - begun < slowMs)
      const next = Delivery.after(due.delivery, outcome, now)
      const isLatest = yield* deliveries.settle(due, next)
      return isLatest && next.status === "pending" ? next.next - now : undefined
    })

    const handle = Effect.fnUntraced(function*(item: WorkItem) {
      const due = Option.getOrUndefined(yield* deliveries.dueOf(item))
      if (due === undefined) return yield* item.done
      const { delivery, owner } = due
      const left = delivery.next - (yield* Clock.currentTimeMillis)
      if (left > earlyMs) return yield* item.later(left)
      if (!receivers.begin(owner)) return yield* item.later(busyMs)
      const pauseMs = yield* Effect.ensuring(attempt(due), Effect.sync(() => receivers.end(owner)))
      yield* pauseMs === undefined ? item.done : item.later(pauseMs)
    })

    const settle = (item: WorkItem) =>
      handle(item).pipe(
        Effect.catchCause((cause) =>
          Effect.andThen(Effect.logWarning("a webhook returned to its queue", cause), item.later(unreadableMs))
        )
      )

    return yield* free.take(1).pipe(
      Effect.andThen(
        Effect.onExit(
          deliveries.next,
          (exit) => Exit.isSuccess(exit) && Option.isSome(exit.value) ? Effect.void : free.release(1)
        )
      ),
      Effect.flatMap((item) =>
        Option.isNone(item)
          ? Effect.void
          : Effect.forkIn(Effect.ensuring(settle(item.value), free.release(1)), scope)
      ),
      Effect.retry(whileJetStreamFails),
      Effect.forever
    )
  })
  yield* Effect.forkScoped(serve)
}))
